"""Conditions as programs of a small stack machine, and the compiled loops that run them."""
