"""Expressions as Python functions of the values that they read."""
