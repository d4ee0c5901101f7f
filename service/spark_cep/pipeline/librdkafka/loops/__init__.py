"""The compiled loop that produces many messages."""
