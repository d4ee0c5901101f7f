"""The state of the matching stage between batches, as entries of Spark's state store."""
