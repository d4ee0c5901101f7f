"""Tests of bytes and records: framing, schemas, output records, the registry."""
