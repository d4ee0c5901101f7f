"""Compiled loops over what is read of a stored state."""
