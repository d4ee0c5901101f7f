"""Spark itself: the session, its jars and processes, and what it prints."""
