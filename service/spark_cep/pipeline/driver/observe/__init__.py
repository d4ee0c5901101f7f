"""From reports of batches to metrics."""
