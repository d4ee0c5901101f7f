"""Accounts of rules of steps."""
