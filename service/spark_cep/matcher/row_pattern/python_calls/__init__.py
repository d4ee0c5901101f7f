"""Conditions and measures of row patterns that Python computes: the rows that they read, and the
calls from compiled loops."""
