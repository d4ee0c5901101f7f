"""Commands that try rules on events."""
