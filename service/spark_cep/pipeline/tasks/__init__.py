"""Spark's side of the two stages: rows and state of its tasks in, rows out."""
