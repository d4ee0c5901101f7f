"""The chart and the job against a real control plane; see :mod:`.cluster`."""
