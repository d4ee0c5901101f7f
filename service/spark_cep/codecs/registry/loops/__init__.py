"""The compiled loops of framings."""
