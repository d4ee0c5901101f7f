"""What a service shows before it has done anything."""

from __future__ import annotations

import platform
from pathlib import Path
from unittest.mock import Mock

import pyspark
import pytest

from spark_cep import __version__
from spark_cep.config import Settings
from spark_cep.errors import KafkaUnavailableError, StateError
from spark_cep.observability.metrics import Metrics
from spark_cep.pipeline.driver.checkpoint.failures import JobFailedError, RefusedError
from spark_cep.pipeline.driver.rules.batch_rules import BatchRules
from spark_cep.pipeline.driver.service import Service


@pytest.mark.parametrize(
    ("end", "at_fault"),
    [
        (RefusedError("no right to read"), False),
        (KafkaUnavailableError("the limit is 1 s"), False),
        (StateError("the checkpoint is lost"), False),
        (JobFailedError("the query failed"), True),
    ],
)
def test_an_end_that_says_nothing_against_the_rules(end: Exception, *, at_fault: bool) -> None:
    """What Kafka refuses, or does not answer, is no failure of theirs."""
    rules = Mock()
    with pytest.raises(type(end)), BatchRules.attempts_counted(rules):
        raise end
    assert rules.not_at_fault.called is not at_fault


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
