"""The soak: load, rules, kills and late data together, watched, and held against the core."""
