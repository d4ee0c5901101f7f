"""The naive matcher: one event, one rule, one key at a time. What the kernel is held against."""
