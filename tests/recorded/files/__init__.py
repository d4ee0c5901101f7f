"""Forms of recorded files."""
