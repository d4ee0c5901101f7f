"""The compiled loops that decode Avro."""
