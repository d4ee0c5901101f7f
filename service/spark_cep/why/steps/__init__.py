"""The account of rules of steps."""
