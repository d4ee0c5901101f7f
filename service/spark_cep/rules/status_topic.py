"""The status topic, as others than its job read it."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Final

from spark_cep.config import Kafka
from spark_cep.rules.sources.compacted_topic import CompactedTopic

_SECONDS: Final = 10.0


def open_status(kafka: Kafka, topic: str) -> CompactedTopic:
    """The status topic, on the cluster of the output, not yet read."""
    config = kafka.consumer_config("spark-cep-rule-status")
    return CompactedTopic(topic, config, _SECONDS, "states of rules")


def ids_in_status(kafka: Kafka, topic: str, job: str) -> set[str]:
    """The ids of the rules that ``job`` runs or rejects. RuleSetError when the topic cannot be
    read."""
    with closing(open_status(kafka, topic)) as status:
        status.read()
        keys = [key for key in status.records if key is not None and job_of(key) == job]
        values = [json.loads(status.records[key].value) for key in keys]
    return {value["rule_id"] for value in values if value.get("rule_id") is not None}


def job_of(key: bytes) -> str | None:
    """The job that wrote the record with this key; ``None`` where no job of ours did."""
    try:
        return str(json.loads(key)[0])
    except (ValueError, LookupError, TypeError):
        return None
