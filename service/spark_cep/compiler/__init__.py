"""Plans, which the matcher runs, and the compilers that make them from rules."""
