"""The documents of cases: their shape, and how they are read."""
