"""The compiled loop that copies many messages into columns."""
