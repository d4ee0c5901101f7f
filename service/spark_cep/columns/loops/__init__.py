"""Compiled loops over bytes and packed columns, and the hash of texts."""
