"""The exit codes of ``spark-cep``: each once, and which error has which.

``docs/operations/exit-codes.md`` has them in a table, which a test holds against this list.
"""

from __future__ import annotations

from enum import IntEnum, unique
from typing import Final

from spark_cep.errors import (
    CircuitBreakerError,
    ConfigurationError,
    GraceError,
    JavaEndedError,
    KafkaUnavailableError,
    OutputError,
    PagesUnavailableError,
    RegistryError,
    RegistryUnavailableError,
    RuleSetError,
    RulesTopicUnavailableError,
    RulesUnavailableError,
    SchemaError,
    SparkCepError,
    StartError,
    StateError,
    TakenOverError,
)


@unique
class ExitCode(IntEnum):
    """The exit codes of the process. A code keeps its number."""

    DONE = 0
    JOB_FAILED = 1
    USAGE = 2
    CONFIGURATION = 3
    RULES = 4
    START_FAILED = 5
    SCHEMAS = 6
    STATE_REFUSED = 7
    TAKEN_OVER = 8
    CIRCUIT_BREAKER_OPEN = 9
    KAFKA_UNAVAILABLE = 10
    REGISTRY_UNAVAILABLE = 11
    GRACE_RAN_OUT = 12
    ENDED_AT_ONCE = 13
    JAVA_ENDED = 14
    INTERNAL_ERROR = 70


_BY_ERROR: dict[type[SparkCepError], ExitCode] = {
    SparkCepError: ExitCode.JOB_FAILED,
    OutputError: ExitCode.JOB_FAILED,
    PagesUnavailableError: ExitCode.JOB_FAILED,
    ConfigurationError: ExitCode.CONFIGURATION,
    RuleSetError: ExitCode.RULES,
    RulesUnavailableError: ExitCode.START_FAILED,
    RulesTopicUnavailableError: ExitCode.KAFKA_UNAVAILABLE,
    StartError: ExitCode.START_FAILED,
    RegistryError: ExitCode.SCHEMAS,
    SchemaError: ExitCode.SCHEMAS,
    StateError: ExitCode.STATE_REFUSED,
    TakenOverError: ExitCode.TAKEN_OVER,
    CircuitBreakerError: ExitCode.CIRCUIT_BREAKER_OPEN,
    KafkaUnavailableError: ExitCode.KAFKA_UNAVAILABLE,
    RegistryUnavailableError: ExitCode.REGISTRY_UNAVAILABLE,
    GraceError: ExitCode.GRACE_RAN_OUT,
    JavaEndedError: ExitCode.JAVA_ENDED,
}

_FIRST: Final = "without that, a start fails again"
ADVICE: Final[dict[ExitCode, str]] = {
    ExitCode.DONE: "nothing",
    ExitCode.JOB_FAILED: "start again: the batch is repeated; if it fails again, see the reason",
    ExitCode.USAGE: "see `spark-cep run --help`",
    ExitCode.CONFIGURATION: f"correct what the reason names; {_FIRST}",
    ExitCode.RULES: (
        f"correct the rules or their source, and test them with `spark-cep check`; {_FIRST}"
    ),
    ExitCode.START_FAILED: "correct what the reason names, then start again",
    ExitCode.SCHEMAS: f"register or correct the schema; {_FIRST}",
    ExitCode.STATE_REFUSED: f"see docs/operations/checkpoints.md; {_FIRST}",
    ExitCode.TAKEN_OVER: "nothing: the other instance continues; a start would take over from it",
    ExitCode.CIRCUIT_BREAKER_OPEN: "see the dead letters; a start continues after the last batch",
    ExitCode.KAFKA_UNAVAILABLE: "start again when Kafka answers",
    ExitCode.REGISTRY_UNAVAILABLE: "start again when the registry answers",
    ExitCode.GRACE_RAN_OUT: (
        "start again: the batch is repeated; if batches take longer, raise `lifecycle.stop_grace`"
    ),
    ExitCode.ENDED_AT_ONCE: "start again: the batch is repeated",
    ExitCode.JAVA_ENDED: (
        "start again: the batch is repeated; if it was killed or out of memory, see"
        " docs/operations/sizing.md"
    ),
    ExitCode.INTERNAL_ERROR: "report it, with `exception`; a start repeats the batch",
}
"""The advice for each exit code."""


def exit_code(error: BaseException) -> ExitCode:
    """The code of ``error``: that of its class, or of the nearest one above it."""
    return next(
        (_BY_ERROR[kind] for kind in type(error).__mro__ if kind in _BY_ERROR),
        ExitCode.INTERNAL_ERROR,
    )
