"""Plans in words and as drawings."""
