"""Forms of files: their columns, and their records as a topic has them."""
