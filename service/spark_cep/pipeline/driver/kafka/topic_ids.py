"""Notices input topics that are deleted and created again while the job runs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from spark_cep.config import Settings
from spark_cep.errors import SparkCepError, StateError
from spark_cep.observability.logs import logger
from spark_cep.pipeline.driver.kafka.cluster import Cluster
from spark_cep.pipeline.driver.kafka.watch import quick_cluster

_log = logger(__name__)


class TopicIds:
    """``ids``: Kafka's ids of the topics that the run reads, by name."""

    def __init__(self, settings: Settings, ids: Mapping[str, str]) -> None:
        self._settings = settings
        self._ids = dict(ids)

    def check(self) -> None:
        """Raise StateError when a topic has another id than at the start: offsets of before are not
        those of the records that are there now; without ``source.fail_on_data_loss`` it is logged.
        Where Kafka does not answer, or a topic is gone, the batch itself will tell."""
        try:
            now = self._cluster.topic_ids(list(self._ids))
        except SparkCepError:
            return
        remade = [topic for topic, known in self._ids.items() if now.get(topic, known) != known]
        if remade and not self._settings.source.fail_on_data_loss:
            self._ids |= {topic: now[topic] for topic in remade}
            _log.error("input_replaced", topics=remade)
        elif remade:
            raise StateError(
                f"{', '.join(remade)}: deleted and created again while the job ran, so its offsets"
                " are not those of the records that are there now; nothing of the new topic was"
                " read: start from a new checkpoint, or set source.fail_on_data_loss to false to go"
                " on at the old offsets"
            )

    @cached_property
    def _cluster(self) -> Cluster:
        return quick_cluster(self._settings)
