"""Commands that prepare a job: its files, its settings."""
