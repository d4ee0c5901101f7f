"""Measurements: the matcher alone, on one core, next to Flink's CEP operator on the same events."""
