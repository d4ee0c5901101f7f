"""The checks of a rule's tree that need no schema of the events."""
