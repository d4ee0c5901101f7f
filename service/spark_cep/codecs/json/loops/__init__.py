"""The compiled loops of JSON."""
