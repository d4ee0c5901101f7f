"""The events of a batch as columns, on their way to the rules."""
