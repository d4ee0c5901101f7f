"""The start of a run: output topics that are missing, and the subjects of their schemas."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from spark_cep.codecs.output.fields import Contract
from spark_cep.codecs.output.schemas import schema_text
from spark_cep.codecs.registry.registry import Registry
from spark_cep.codecs.registry.settings import RegistrySettings
from spark_cep.config import Settings
from spark_cep.errors import SparkCepError
from spark_cep.model import Coordinates, MatchRow, TakenEvent
from spark_cep.pipeline.driver.kafka.cluster import Cluster
from spark_cep.pipeline.driver.lifecycle.retry import ask_once
from spark_cep.pipeline.driver.output_setup import output_encoder
from tests.kafka_access import KafkaAccess

pytestmark = pytest.mark.kafka

KINDS = ("matches", "timeouts", "match_rows", "late", "dead_letters", "shadow")
ROW = MatchRow("ab", 1, "k", None, 1, None, TakenEvent(Coordinates("t", 0, 5), 5))


@pytest.fixture
def prefix() -> str:
    """That of the output topics of one test."""
    return uuid4().hex


def _settings(
    kafka: KafkaAccess, registry: str, folder: Path, prefix: str, **more: Any
) -> Settings:
    topics = {kind: f"{prefix}.{kind}" for kind in KINDS}
    return Settings.model_validate(
        {
            "kafka": {"bootstrap_servers": kafka.bootstrap},
            "inputs": {"t": {"topics": ["t"]}},
            "outputs": {
                "topics": topics | {"rule_status": None, "rule_audit": None},
                "create_topics": {"partitions": 2, "replication": 1},
            },
            "registry": {"url": registry, "max_attempts": 1, **more},
            "state": {"checkpoint": str(folder / "checkpoint")},
            "rules": {"folder": str(folder), "overrides_topic": None},
        }
    )


def test_topics_and_subjects_are_made(
    kafka: KafkaAccess, registry: str, tmp_path: Path, prefix: str
) -> None:
    """Every output topic is there, with the schemas of what is in it; rows of matches have theirs,
    and their records its id."""
    settings = _settings(kafka, registry, tmp_path, prefix)
    given = settings.registry
    assert given is not None
    known, cluster = Registry(RegistrySettings.of(given)), Cluster(settings)
    encoder = output_encoder(settings, known, cluster, ask_once)
    assert {f"{prefix}.{kind}" for kind in KINDS} <= set(cluster.topics())
    registered = known.lookup(f"{prefix}.match_rows-value", schema_text("match-row"))
    for shadow, topic in ((False, f"{prefix}.match_rows"), (True, f"{prefix}.shadow")):
        record = encoder.row(ROW, shadow=shadow)
        assert record.value is not None
        assert (record.topic, record.value[1:5]) == (topic, registered.to_bytes(4))


def test_a_subject_that_is_not_registered(
    kafka: KafkaAccess, registry: str, tmp_path: Path, prefix: str
) -> None:
    """Where the service must not register schemas, that of rows is asked for like the others."""
    settings = _settings(kafka, registry, tmp_path, prefix, auto_register=False)
    given = settings.registry
    assert given is not None
    known, cluster = Registry(RegistrySettings.of(given)), Cluster(settings)
    contracts: dict[str, Contract] = {
        "matches": "match",
        "timeouts": "timeout",
        "dead_letters": "dead-letter",
    }
    for kind, contract in contracts.items():
        known.register(f"{prefix}.{kind}-value", schema_text(contract))
    with pytest.raises(SparkCepError, match=f"{prefix}.match_rows-value"):
        output_encoder(settings, known, cluster, ask_once)
    known.register(f"{prefix}.match_rows-value", schema_text("match-row"))
    assert output_encoder(settings, known, cluster, ask_once).row(ROW).topic.startswith(prefix)
