"""Documents of cases."""
