"""What the second stage keeps between batches, as entries of Spark's state store."""
