"""The compiled loops that encode results."""
