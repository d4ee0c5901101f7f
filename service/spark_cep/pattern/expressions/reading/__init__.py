"""Text to expression: tokens, syntax, names."""
