"""The job's two stages without Kafka and Spark: records of any iterable in, results out.

:class:`~spark_cep.runner.runner.Runner` runs production's decoder, key groups and matcher over
batches of records; the state of its key groups is in memory, in the blocks that a checkpoint has.
The test kit stands on it.
"""
