"""Event time and rules as the driver gives them to the query, in the source's offset."""
