"""The compiled loops of row patterns: rows of many keys to results."""
