"""What ended a query, read from Spark's report, which is text.

Errors of tasks reach the driver as text alone: an exception of a Python worker or of the Java
client stands somewhere in the trace.
"""

from __future__ import annotations

import re
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.base import PySparkException

from service.errors import KafkaAwayError, OutputError, StartError

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
        not\ acknowledged | no\ answer\ within
      | Local:\ (?:
            Message\ timed\ out | Timed\ out | Broker\ transport\ failure
          | All\ broker\ connections\ are\ down | Host\ resolution\ failure
        )
      | Broker:\ (?:
            Coordinator\ (?:not\ available | load\ in\ progress) | Not\ coordinator
          | Leader\ not\ available | Not\ leader\ for | Request\ timed\ out
          | Broker\ not\ available | Broker\ disconnected | Not\ enough\ in-sync
        )
    ) [^\n]*
    """,
    re.VERBOSE,
)


def kafka_away(error: PySparkException) -> KafkaAwayError | None:
    """The error as KafkaAwayError, when the query failed because Kafka did not answer."""
    trace = str(getattr(error, "_stackTrace", None) or "")
    return kafka_away_in(f"{error}\n{trace}")


def away_or_same(error: OutputError) -> KafkaAwayError | OutputError:
    """``error``, as KafkaAwayError when Kafka did not answer."""
    kind = type(error)
    return kafka_away_in(f"{kind.__module__}.{kind.__name__}: {error}") or error


def not_started(checkpoint: str, error: PySparkException | Py4JJavaError) -> StartError:
    """The error of a query that did not even start, mostly for its checkpoint's place."""
    told = str(error.java_exception if isinstance(error, Py4JJavaError) else error)
    return StartError(f"no query can be started with state.checkpoint {checkpoint}: {told}")


def kafka_away_in(report: str) -> KafkaAwayError | None:
    """As :func:`kafka_away`, from a report's text."""
    found = _KAFKA_AWAY.search(report)
    return found and KafkaAwayError(f"Kafka does not answer: {found[0].strip()}")
