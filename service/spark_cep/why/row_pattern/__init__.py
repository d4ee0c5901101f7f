"""The account of rules in SQL (MATCH_RECOGNIZE)."""
