"""Measurements: whole runs against a real broker, on this machine."""
