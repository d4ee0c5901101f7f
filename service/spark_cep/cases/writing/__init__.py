"""Case files written: from events that were seen, and with results that are accepted."""
