"""What a service shows before it has done anything."""

from __future__ import annotations

import platform
from pathlib import Path

import pyspark
from spark_cep import __version__
from spark_cep.config import Settings
from spark_cep.observability.metrics import Metrics
from spark_cep.pipeline.driver.service import Service


def test_it_is_to_be_seen_before_kafka_answers(tmp_path: Path) -> None:
    """What runs, and that it is not ready: alerts on restarts and readiness look at both, also of a
    job that waits for Kafka at its start."""
    settings = Settings.model_validate(
        {
            "kafka": {"bootstrap_servers": "localhost:9092"},
            "inputs": {"t": {"topics": ["t"]}},
            "registry": {"url": "http://localhost"},
            "state": {"checkpoint": str(tmp_path / "checkpoint")},
        }
    )
    metrics = Metrics()
    Service(settings, metrics)
    build = {
        "version": __version__,
        "python_version": platform.python_version(),
        "spark_version": pyspark.__version__,
    }
    assert metrics.registry.get_sample_value("spark_cep_build_info", build) == 1
    assert metrics.registry.get_sample_value("spark_cep_ready") == 0
