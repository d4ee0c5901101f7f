"""Case files written."""
