"""The two stages of a back-test on Spark, as plain functions of iterables."""
