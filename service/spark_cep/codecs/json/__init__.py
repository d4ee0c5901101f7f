"""JSON: an object for each record, read by the schema that the input declares."""
