"""Runs of cases: their results, and how these differ from what is expected."""
