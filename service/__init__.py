"""spark-cep: complex event processing on Kafka and Spark."""

from importlib.metadata import version

__version__ = version("spark-cep")
