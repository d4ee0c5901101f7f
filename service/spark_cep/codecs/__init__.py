"""Bytes and records: framing, Avro, registry, output records, dead letters."""
