"""Asks Kafka all the time whether it answers, and where the partitions end that are read.

A thread and a client of its own, so that an outage is known within ten seconds wherever the job
stands: Spark's source and its tasks know it only when their time-outs have passed, one after the
other. A broker is asked who leads the partitions of the input, and the leaders of those that were
read where they end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from spark_cep.config import Settings
from spark_cep.errors import ConfigurationError, KafkaUnavailableError, StartError
from spark_cep.pipeline.driver.kafka.cluster import Cluster
from spark_cep.pipeline.driver.kafka.input_position import Lag
from spark_cep.pipeline.driver.lifecycle.background import Background
from spark_cep.pipeline.driver.lifecycle.outage import Outage

_ASK_EVERY_SECONDS: Final = 1.5
_ASK_AGAIN_SECONDS: Final = 0.5
_ANSWER_SECONDS: Final = 2.0
_MOST_MISSED: Final = 1
"""One answer may be missed: a broker is slow for a moment, or a leader has just moved. With the
times above an outage is known after 6 s, or 10 s where one of several brokers still answers."""
_QUICK: Final = {
    # What was asked on a connection that is gone is not waited for.
    "socket.timeout.ms": int(_ANSWER_SECONDS * 1000),
    "socket.connection.setup.timeout.ms": int(_ANSWER_SECONDS * 1000),
}
_RECONNECTS: Final = {"reconnect.backoff.ms": 100, "reconnect.backoff.max.ms": 1000}


def quick_cluster(settings: Settings, config: Mapping[str, Any] | None = None) -> Cluster:
    """The cluster, asked for quick answers; ``config`` as that of :class:`Cluster`."""
    given = settings.kafka.admin_config() if config is None else config
    own = any(name.startswith("reconnect.") for name in given)
    # The first pause may not be longer than the longest: the user's own are taken together.
    more = _QUICK if own else _QUICK | _RECONNECTS
    return Cluster(settings, seconds=_ANSWER_SECONDS, config={**more, **given})


class KafkaWatch(Background):
    """Tells ``outage`` whether Kafka answers for ``topics``, and ``lag`` where partitions end, if
    that is known."""

    def __init__(
        self, settings: Settings, topics: Sequence[str], lag: Lag, outage: Outage, run: str
    ) -> None:
        self._settings: Final = settings
        self._topics: Final = topics
        self._lag: Final = lag
        self._outage: Final = outage
        super().__init__("kafka-watch", self._work, run)

    def _work(self) -> None:
        cluster = quick_cluster(self._settings)
        missed = 0
        while not self.stopped:
            missed = 0 if self._ask(cluster, missed) else missed + 1
            self.wait(_ASK_AGAIN_SECONDS if missed else _ASK_EVERY_SECONDS)

    def _ask(self, cluster: Cluster, missed: int) -> bool:
        """Ask Kafka, and tell whether there was an answer."""
        try:
            ends = cluster.ends(self._topics, self._lag.partitions())
        except (KafkaUnavailableError, ConfigurationError) as error:
            if missed >= _MOST_MISSED and not self.stopped:
                self._lag.unknown()
                self._outage.unavailable(error)
            return False
        except StartError:
            # An answer all the same, as that it may not be asked. Seconds of lag go on growing.
            ends = {}
        self._lag.ends(ends)
        self._outage.back()
        return True
