"""The driver: from settings to a query that runs, is watched, and ends."""
