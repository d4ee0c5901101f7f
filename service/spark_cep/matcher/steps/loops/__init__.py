"""The compiled kernel: events and deadlines applied to partial matches."""
