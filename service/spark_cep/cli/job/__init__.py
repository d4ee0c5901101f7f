"""Commands for operators of a job."""
