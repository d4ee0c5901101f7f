"""Three brokers, one of which goes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from examples.embedded import EmbeddedCluster
from spark_cep.config import Settings
from spark_cep.errors import KafkaUnavailableError
from spark_cep.pipeline.driver.kafka.watch import quick_cluster

JARS = Path(__file__).parents[2] / ".work" / "jars"
_PARTITIONS = 6
_SECONDS = 3.0


@pytest.mark.kafka
def test_asking_costs_nothing_while_a_broker_is_away(tmp_path: Path) -> None:
    """The others lead its partitions soon, and tell their ends; the processor is left alone from
    the moment on that it goes."""
    with EmbeddedCluster(tmp_path / "cluster", JARS) as kafka:
        kafka.create_topics({"t": _PARTITIONS})
        settings = Settings.model_validate(
            {
                "kafka": {"bootstrap_servers": kafka.bootstrap},
                "inputs": {"t": {"topics": ["t"]}},
                "registry": {"url": "http://localhost"},
                "state": {"checkpoint": str(tmp_path / "checkpoint")},
            }
        )
        cluster = quick_cluster(settings)
        partitions = [("t", number) for number in range(_PARTITIONS)]
        ends = dict.fromkeys(partitions, 0)
        deadline = time.monotonic() + 30
        # Brokers learn of the topic one after the other.
        while not all(kafka.leads("t", number) for number in range(_PARTITIONS)):
            assert time.monotonic() < deadline
        assert cluster.ends(["t"], partitions) == ends
        gone = kafka.leads("t")
        assert gone is not None
        gone.kill()
        began, busy = time.monotonic(), time.process_time()
        answers = 0
        while not answers or time.monotonic() < began + _SECONDS:
            assert time.monotonic() < deadline
            try:
                assert cluster.ends(["t"], partitions) == ends
                answers += 1
            except KafkaUnavailableError:
                answers = 0
            time.sleep(0.5)
        share = (time.process_time() - busy) / (time.monotonic() - began)
        assert share < 0.05
        assert kafka.leads("t") not in (None, gone)
