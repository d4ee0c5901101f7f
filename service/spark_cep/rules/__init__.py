"""The set of rules that run together, and where it comes from."""
