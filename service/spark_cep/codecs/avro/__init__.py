"""Avro: schemas, their resolution, and records to columns."""
