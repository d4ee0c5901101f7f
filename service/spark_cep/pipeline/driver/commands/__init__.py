"""Commands on the checkpoint or topics of a job."""
