"""Rules as trees, and the front ends that make them: YAML, JSON, SQL, Python."""
