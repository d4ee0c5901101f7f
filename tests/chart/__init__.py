"""The chart: what it renders is what the service takes, and what it shows of it exists."""
