"""Topics of an embedded broker or cluster, made also right after it stood still."""

from __future__ import annotations

import time
from collections.abc import Mapping

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

_SECONDS = 60.0
_SECONDS_OF_AN_ATTEMPT = 5.0
# A broker that was paused for longer than its session lasts is fenced until its next heartbeat: it
# refuses new topics, and a client that asked it meanwhile knows of no controller.
_FENCED = {KafkaError.INVALID_REPLICATION_FACTOR, KafkaError._TIMED_OUT}  # noqa: SLF001 (public)


def create_topics(
    bootstrap: str,
    topics: Mapping[str, int],
    config: Mapping[str, str] | None = None,
    *,
    copies: int = 1,
) -> None:
    """Create ``topics`` (name to number of partitions), and try again while the broker is fenced.

    Raises:
        KafkaException: the first error of a topic that cannot be created.
    """
    deadline = time.monotonic() + _SECONDS
    missing = dict(topics)
    tried: set[str] = set()  # may be there, though an attempt had no answer
    while missing:
        # A client that found no controller looks again only later: a new one for each attempt.
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        new = [NewTopic(name, n, copies, config=dict(config or {})) for name, n in missing.items()]
        created = admin.create_topics(
            new,
            operation_timeout=_SECONDS_OF_AN_ATTEMPT,
            request_timeout=_SECONDS_OF_AN_ATTEMPT,
        )
        for name, future in created.items():
            try:
                future.result(_SECONDS)
            except KafkaException as error:
                code = error.args[0].code()
                if code == KafkaError.TOPIC_ALREADY_EXISTS and name in tried:
                    del missing[name]
                elif code in _FENCED and time.monotonic() < deadline:
                    tried.add(name)
                    time.sleep(0.1)
                else:
                    raise
            else:
                del missing[name]
