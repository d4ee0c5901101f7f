"""From Kafka to columns: ranges of offsets, read by librdkafka in the Python workers."""
