"""The page on which a rule is tried."""
