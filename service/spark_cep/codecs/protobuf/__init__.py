"""Protobuf: descriptors, their columns, and records to columns."""
