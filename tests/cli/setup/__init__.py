"""Commands that prepare a job."""
