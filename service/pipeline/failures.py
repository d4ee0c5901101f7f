"""What ended a query, read from Spark's report, which is text.

Errors of tasks reach the driver as text alone: an exception of a Python worker or of the Java
client stands somewhere in the trace.
"""

from __future__ import annotations

import re
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.base import PySparkException

from service.errors import KafkaAwayError, StartError

_KAFKA_AWAY: Final = re.compile(
    r"""
    org\.apache\.kafka\.common\.errors\.(?:
        Timeout | Disconnect | Network | BrokerNotAvailable | LeaderNotAvailable
      | NotLeaderOrFollower | ReplicaNotAvailable | CoordinatorNotAvailable
      | CoordinatorLoadInProgress | FencedLeaderEpoch | UnknownLeaderEpoch
    )Exception (?: :\ [^\n]* )?
  | java\.util\.concurrent\.TimeoutException:\ Cannot\ fetch\ record [^\n]*
  | org\.apache\.kafka\.common\.config\.ConfigException:\ No\ resolvable\ bootstrap [^\n]*
  | service\.errors\.KafkaAwayError:\ [^\n]*
  | service\.errors\.OutputError:\ [^\n]* (?:
        not\ acknowledged | Message\ timed\ out | Broker\ transport\ failure
      | broker\ connections\ are\ down
    ) [^\n]*
    """,
    re.VERBOSE,
)


def kafka_away(error: PySparkException) -> KafkaAwayError | None:
    """The error as KafkaAwayError, when the query failed because Kafka did not answer."""
    trace = str(getattr(error, "_stackTrace", None) or "")
    return kafka_away_in(f"{error}\n{trace}")


def not_started(checkpoint: str, error: PySparkException | Py4JJavaError) -> StartError:
    """The error of a query that did not even start, mostly for its checkpoint's place."""
    told = str(error.java_exception if isinstance(error, Py4JJavaError) else error)
    return StartError(f"no query can be started with state.checkpoint {checkpoint}: {told}")


def kafka_away_in(report: str) -> KafkaAwayError | None:
    """As :func:`kafka_away`, from a report's text."""
    found = _KAFKA_AWAY.search(report)
    return found and KafkaAwayError(f"Kafka does not answer: {found[0].strip()}")
