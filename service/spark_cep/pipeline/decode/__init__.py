"""The first stage: Kafka records to packets of events, in the tasks that read Kafka."""
