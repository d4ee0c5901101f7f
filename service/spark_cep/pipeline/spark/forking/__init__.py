"""Spark's Python processes, forked from one that has loaded what they need."""
