"""The schema registry, and the framing that it puts around a record."""
