"""What the service shows of itself: metrics, logs, health."""
