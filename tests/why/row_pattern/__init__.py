"""Accounts of rules in SQL."""
