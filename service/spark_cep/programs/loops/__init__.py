"""The compiled expression machine, and the loop that evaluates conditions for many events."""
