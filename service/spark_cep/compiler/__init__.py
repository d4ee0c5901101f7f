"""What the machine runs: plans, and how rules become plans."""
