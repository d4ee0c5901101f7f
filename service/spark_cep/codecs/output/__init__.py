"""Output records: matches, timeouts, late events and dead letters as bytes."""
