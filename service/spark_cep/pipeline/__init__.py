"""The only part that knows Spark: from Kafka through the matcher and back."""
