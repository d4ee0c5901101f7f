"""Output records to Kafka, in the tasks of the second stage."""
