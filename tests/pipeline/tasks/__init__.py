"""Tests of Spark's side of the two stages."""
