"""A plain matcher of row patterns, one key and one row at a time."""
