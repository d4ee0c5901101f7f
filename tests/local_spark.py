"""A Spark session of this machine, as the service itself makes it, for jobs that share one."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from spark_cep.config import Settings
from spark_cep.pipeline.spark.session import spark_session


def local_spark(folder: Path) -> SparkSession:
    """Start Spark on two cores; what it writes is below ``folder``."""
    settings = Settings.model_validate(
        {
            "kafka": {"bootstrap_servers": "localhost:9092"},
            "inputs": {"unused": {"topics": ["unused"]}},
            "registry": {"url": "http://localhost"},
            "state": {"checkpoint": str(folder / "unused"), "rocksdb_memory": "128 MiB"},
            "spark": {
                "master": "local[2]",
                "conf": {
                    "spark.driver.memory": "2g",
                    "spark.sql.warehouse.dir": str(folder / "warehouse"),
                    "spark.local.dir": str(folder / "scratch"),
                },
            },
        }
    )
    return spark_session(settings)
