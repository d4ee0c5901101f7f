"""The engine of rules of steps: plans as arrays, applied by a compiled loop."""
