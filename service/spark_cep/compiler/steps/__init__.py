"""From the steps of a rule to its plan."""
