"""What the driver tells the query of time and rules, as part of the source's offset."""
