"""Why rules did, or did not, match."""
