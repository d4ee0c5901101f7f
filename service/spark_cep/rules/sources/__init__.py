"""The places that rules come from: a folder, a Kafka topic, an SQL table, a URL."""
