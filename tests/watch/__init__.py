"""A running job, watched."""
