"""Input topics that are created again while the job runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from spark_cep.errors import KafkaUnavailableError, StateError
from spark_cep.pipeline.driver.kafka import topic_ids
from spark_cep.pipeline.driver.kafka.topic_ids import TopicIds


class Cluster:
    """Kafka's ids of topics; ``None``: it does not answer."""

    ids: dict[str, str] | None

    def topic_ids(self, topics: list[str]) -> dict[str, str]:
        """As the cluster's."""
        if self.ids is None:
            raise KafkaUnavailableError("away")
        return {topic: self.ids[topic] for topic in topics if topic in self.ids}


@pytest.mark.parametrize("fail", [True, False])
def test_a_topic_that_was_created_again(monkeypatch: pytest.MonkeyPatch, fail: bool) -> None:
    """It ends the job, or is told once for each time; silence and a topic that is gone do
    neither."""
    told: list[dict[str, Any]] = []
    monkeypatch.setattr(topic_ids._log, "error", lambda name, **v: told.append({name: v}))
    settings: Any = SimpleNamespace(source=SimpleNamespace(fail_on_data_loss=fail))
    ids, cluster = TopicIds(settings, {"a": "1", "b": "2"}), Cluster()
    ids.__dict__["_cluster"] = cluster
    for cluster.ids in ({"a": "1", "b": "2"}, None, {"a": "1"}, {"a": "1", "b": "2"}):
        ids.check()
    assert told == []
    cluster.ids = {"a": "1", "b": "3"}
    if fail:
        with pytest.raises(StateError, match=r"^b: deleted and created again while the job ran"):
            ids.check()
        return
    ids.check()
    ids.check()
    cluster.ids = {"a": "4", "b": "5"}
    ids.check()
    assert told == [
        {"input_replaced": {"topics": ["b"]}},
        {"input_replaced": {"topics": ["a", "b"]}},
    ]
