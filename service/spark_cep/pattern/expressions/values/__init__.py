"""Values and their types: arithmetic, order, CAST, time zones, regular expressions."""
