"""The error that ended a query, read from Spark's report, which is text.

Errors of tasks, and of the sources, reach the driver as text alone: an exception of a Python
process stands somewhere in the trace.
"""

from __future__ import annotations

import re
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from spark_cep.errors import (
    ConfigurationError,
    KafkaUnavailableError,
    OutputError,
    SparkCepError,
    StartError,
    StateError,
    TakenOverError,
)
from spark_cep.pipeline.driver.checkpoint.state_faults import state_fault

KAFKA_UNAVAILABLE: Final = re.compile(r"spark_cep\.errors\.KafkaUnavailableError: [^\n]*")
#: A connection that breaks off. An error of the source itself would come through it.
_SOURCE_LOST: Final = re.compile(
    r"^Caused by: (java\.(?:io|net|nio)\.[\w.]+[^\n]*)(?:\n\s+at [^\n]+)*?"
    r"\n\s+at [\w.]+\.PythonStreamingSourceRunner\.",
    re.MULTILINE,
)
#: What Spark says when it would have to run finished tasks of a result stage again, because it made
#: output of the stage before anew and got other bytes (packets tell how long they took).
_EXECUTOR_LOST: Final = re.compile(
    r"stage failure: ([^\n]*(?:indeterminate output|cannot rollback)[^\n]*)"
)
#: Ours, that tasks and the source of the input raise.
_OURS: Final = (StateError, TakenOverError, OutputError, ConfigurationError, StartError)


class JobFailedError(SparkCepError):
    """The query ended by an error that the service cannot repair."""


class RefusedError(JobFailedError):
    """Something was refused to the running job, which no rule is at fault for. At a start it is
    ConfigurationError or StartError, whose exit codes say that nothing was begun."""


def failure(error: PySparkException, checkpoint: str) -> SparkCepError:
    """The error of a query on a checkpoint, as one line out of a long report; our own errors keep
    their kind."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    for kind in _OURS:
        name = f"{kind.__module__}.{kind.__name__}: "
        own = [line.partition(name)[2] for line in lines if name in line]
        if own:
            return kind(own[-1])
    if "CONCURRENT_STREAM_LOG_UPDATE" in str(error):
        return TakenOverError("another instance of the service works from the same checkpoint now")
    state = state_fault(str(error), checkpoint)
    if state is not None:
        return state
    reports = re.findall(r"\b[\w.]*(?:Error|Exception): .+", "\n".join(lines))
    # The worker's own error says more than Java's wrapping of it.
    python = [text for text in reports if not text.startswith(("org.", "java.", "py4j."))]
    text = (python or reports or lines[:1] or ["no message"])[-1]
    return JobFailedError(f"the query failed: {text}")


def kafka_unavailable(error: PySparkException) -> KafkaUnavailableError | None:
    """The error as KafkaUnavailableError, when the query failed because Kafka did not answer."""
    return kafka_unavailable_in(_report(error))


def source_process_lost(error: PySparkException) -> str | None:
    """Java's words, when the query failed because the Python process that plans its input has
    ended; else None."""
    found = _SOURCE_LOST.search(_report(error))
    return found and found[1].strip()


def executor_lost(error: PySparkException) -> str | None:
    """Spark's words, when the query failed because output of its first stage was lost with an
    executor while tasks of the second had ended, so that only the whole batch can be repeated; else
    None."""
    found = _EXECUTOR_LOST.search(str(error))
    return found and found[1].strip()


def _report(error: PySparkException) -> str:
    return f"{error}\n{getattr(error, '_stackTrace', None) or ''}"


def not_started(checkpoint: str, error: PySparkException | Py4JJavaError) -> SparkCepError:
    """The error of a query that did not even start, mostly for its checkpoint's place."""
    reports = str(error.java_exception if isinstance(error, Py4JJavaError) else error)
    return state_fault(str(error), checkpoint) or StartError(
        f"no query can be started with state.checkpoint {checkpoint}: {reports}"
    )


def kafka_unavailable_in(report: str) -> KafkaUnavailableError | None:
    """Do as :func:`kafka_unavailable`, from a report's text."""
    found = KAFKA_UNAVAILABLE.search(report)
    return found and KafkaUnavailableError(f"Kafka does not answer: {found[0].strip()}")
