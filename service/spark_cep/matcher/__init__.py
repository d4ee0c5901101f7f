"""The machine: plans applied to events, with no input or output of its own."""
