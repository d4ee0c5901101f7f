"""The Kafka cluster from the driver's side."""
