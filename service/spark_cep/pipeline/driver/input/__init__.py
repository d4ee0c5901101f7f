"""The Spark source of the input, and what a batch reads."""
