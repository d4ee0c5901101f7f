"""Commands for authors of rules."""
