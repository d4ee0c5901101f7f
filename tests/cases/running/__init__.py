"""Runs of cases."""
