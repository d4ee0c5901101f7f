"""Waiting, retrying and stopping: what keeps a run alive, and ends it in good order."""
