"""The exit codes of ``spark-cep``: each once, and which error has which.

``docs/operations.md`` has them in a table, which a test holds against this list.
"""

from __future__ import annotations

from enum import IntEnum, unique

from service.errors import (
    CircuitBreakerError,
    ConfigurationError,
    DependencyError,
    GraceError,
    KafkaAwayError,
    OutputError,
    RegistryAwayError,
    RegistryError,
    RuleSetError,
    SchemaError,
    SparkCepError,
    StartError,
    StateError,
    TakenOverError,
)


@unique
class ExitCode(IntEnum):
    """How the process ended. Numbers never change their meaning."""

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
    KAFKA_AWAY = 10
    REGISTRY_AWAY = 11
    GRACE_RAN_OUT = 12
    ENDED_AT_ONCE = 13
    INTERNAL_ERROR = 70


_BY_ERROR: dict[type[SparkCepError], ExitCode] = {
    SparkCepError: ExitCode.JOB_FAILED,
    OutputError: ExitCode.JOB_FAILED,
    ConfigurationError: ExitCode.CONFIGURATION,
    RuleSetError: ExitCode.RULES,
    StartError: ExitCode.START_FAILED,
    DependencyError: ExitCode.START_FAILED,
    RegistryError: ExitCode.SCHEMAS,
    SchemaError: ExitCode.SCHEMAS,
    StateError: ExitCode.STATE_REFUSED,
    TakenOverError: ExitCode.TAKEN_OVER,
    CircuitBreakerError: ExitCode.CIRCUIT_BREAKER_OPEN,
    KafkaAwayError: ExitCode.KAFKA_AWAY,
    RegistryAwayError: ExitCode.REGISTRY_AWAY,
    GraceError: ExitCode.GRACE_RAN_OUT,
}


def exit_code(error: BaseException) -> ExitCode:
    """The code of ``error``: that of its class, or of the nearest one above it."""
    return next(
        (_BY_ERROR[kind] for kind in type(error).__mro__ if kind in _BY_ERROR),
        ExitCode.INTERNAL_ERROR,
    )
