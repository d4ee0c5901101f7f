"""Coverage of rules by cases."""
