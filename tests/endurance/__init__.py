"""Endurance: a thousand changes of rules under load, and what they leave behind.

``python -m tests.endurance`` (``make test-endurance``) runs the command over a steady stream while
rules come, change and go, holds its output against the matcher without Spark, and what it takes
against a fresh job with the rules that there are in the end.
"""
