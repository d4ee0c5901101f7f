"""Partial matches, findings, and the results made of them, for both engines."""
