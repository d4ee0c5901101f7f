"""The coverage of rules by their cases."""
