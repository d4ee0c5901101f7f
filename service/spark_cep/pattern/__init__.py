"""What the author says: rules as trees, and the front ends that make them."""
