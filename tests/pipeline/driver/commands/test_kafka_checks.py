"""What ``spark-cep doctor`` says of a cluster: its release, its clock."""

from __future__ import annotations

import time
import uuid

import pytest
from confluent_kafka import Producer

from spark_cep.config import Settings
from spark_cep.pipeline.driver.commands.kafka_checks import (
    check_clock,
    check_transactions,
    release_of,
)
from spark_cep.pipeline.driver.commands.machine_checks import Doubt
from tests.kafka_access import KafkaAccess


@pytest.mark.parametrize(
    ("requests", "release"),
    [
        ({"Fetch": 18, "Produce": 13}, "4.1"),
        ({"Fetch": 17, "Produce": 12}, "4.0"),
        ({"Fetch": 17, "Produce": 11}, "3.9"),
        ({"Fetch": 12, "Produce": 8, "JoinGroup": 7}, "2.7"),
        ({"Fetch": 4}, None),
        ({}, None),
    ],
)
def test_releases(requests: dict[str, int], release: str | None) -> None:
    """The newest one whose requests are known."""
    assert release_of(requests) == release


@pytest.mark.kafka
def test_the_clock(kafka: KafkaAccess) -> None:
    """A record of the future tells that a clock is wrong; an old one tells nothing."""
    topic = f"clock-{uuid.uuid4().hex[:8]}"
    kafka.create_topics({topic: 1})
    settings = Settings.model_validate(
        {
            "kafka": {"bootstrap_servers": kafka.bootstrap},
            "inputs": {"i": {"topics": [topic]}},
            "state": {"checkpoint": "/c"},
        }
    )
    assert check_clock(settings, [topic], 10) == "no record to compare it with"
    producer = Producer(kafka.config())
    now = round(time.time() * 1000)
    for ahead in (-3_600_000, 7_200_000):
        producer.produce(topic, b"x", timestamp=now + ahead)
        producer.flush(10)
        if ahead < 0:
            assert "no record is ahead" in check_clock(settings, [topic], 10)
    told = f"the record at offset 1 of {topic}, partition 0, is stamped more than 60 s ahead"
    with pytest.raises(Doubt, match=told):
        check_clock(settings, [topic], 10)
    assert check_transactions(settings, 20) == "ids with the prefix spark-cep-"
