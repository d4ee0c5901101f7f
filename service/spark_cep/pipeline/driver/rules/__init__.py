"""The rules that each batch runs under, and their records for other systems."""
