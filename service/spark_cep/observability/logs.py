"""Logs: JSON lines on standard output, or text for people on a terminal.

Each line has ``timestamp`` (UTC, ISO 8601), ``level``, ``logger``, ``event`` and what is bound:
``query``, ``run``, ``batch``, ``rule``. Names of events are stable, and ``docs/logs.md`` lists them
all (``tests/docs/test_logs.py``); of an event's own content no line at ``info`` or above has
anything. Python's own logging (py4j, pyspark, confluent-kafka) comes out the same way, its text as
``message``. Secrets are masked by name, by type and inside texts, tracebacks included.

Bound values follow ``contextvars``: a new thread starts without them and binds its own. Only the
run of a process that has but one is known to all its threads.
"""

from __future__ import annotations

import logging
import secrets
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, Literal, TextIO

import structlog
from structlog.typing import EventDict, Processor

from spark_cep.config.redaction import redact
from spark_cep.errors import printable_lines

Level = Literal["debug", "info", "warning", "error"]
Format = Literal["auto", "json", "console"]

_QUIET: Final = (
    "py4j",
    "py4j.java_gateway",
    "urllib3",
    "httpx",
    "httpx2",
    "httpcore",
    "httpcore2",
    "numba",
)
"""Loggers of others that say too much below a warning."""

_SILENT: Final = ("py4j.clientserver", "opentelemetry")
"""Loggers of others whose errors are logged elsewhere, too: what a batch raises, by Spark; a
collector that takes no traces, by ``traces``."""

EVENT_NAME: Final = "event_name"
"""The extra by which a record of Python's logging says which event it is."""

LIBRARY_LOG: Final = "library_log"
"""The event of a line that a library logs."""

_OF_LIBRARIES: Final = (LIBRARY_LOG, "spark_log")
"""Events of which a terminal shows the logger, too."""

_FOR_MACHINES: Final = ("run", "query", "meanwhile")
"""Values that a terminal does not show."""

_RESERVED: Final = ("thread", "exception")
"""Values that a record of Python's logging cannot carry as an extra: given with ``_`` behind."""

_PROCESS: Final[dict[str, str]] = {}
"""What is bound for all threads."""

_LEVELS: Final[list[str]] = []
"""Loggers that were given a level of their own."""

_OWN_KEYS: Final = frozenset({"_record", "_from_structlog", "_logger", "_name"})


def _told_once(record: logging.LogRecord) -> bool:
    """False for what py4j logs, as the root, of a call of Java that it cannot send: the caller gets
    an error, and at the end of a start there is none."""
    return not (record.name == "root" and record.module == "java_gateway")


def configure(
    level: Level = "info",
    log_format: Format = "auto",
    stream: TextIO | None = None,
    levels: Mapping[str, Level] = MappingProxyType({}),
) -> None:
    """Set up all logging of the process; call it once, first. Calling it again replaces it.
    ``levels``: those of some loggers and all below them, in place of ``level``."""
    out = sys.stdout if stream is None else stream
    for_people = log_format == "console" or (log_format == "auto" and out.isatty())
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        _of_process,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        structlog.processors.format_exc_info,
        mask_secrets,
    ]
    render: list[Processor] = [structlog.processors.JSONRenderer(default=str)]
    if for_people:
        console = structlog.dev.ConsoleRenderer(
            colors=out.isatty(), pad_event_to=0, pad_level=False, sort_keys=False
        )
        render = [_without_controls, _for_people, console]
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared[:-1], _named, mask_secrets],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *render],
        )
    )
    handler.addFilter(_told_once)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
    for name in _SILENT:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    for name in _LEVELS:
        if name not in (*_QUIET, *_SILENT):
            logging.getLogger(name).setLevel(logging.NOTSET)
    for name, its_level in levels.items():
        logging.getLogger(name).setLevel(its_level.upper())
    _LEVELS[:] = levels
    logging.captureWarnings(capture=True)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )


def leave() -> None:
    """Log as a process does that has not called :func:`configure`: in one that was forked."""
    logging.getLogger().handlers.clear()
    logging.getLogger().setLevel(logging.WARNING)
    logging.captureWarnings(capture=False)
    structlog.reset_defaults()


def only(name: str) -> None:
    """From now on log what the logger ``name`` says, whatever the level, and nothing else."""
    logging.getLogger(name).setLevel(logging.INFO)
    for handler in logging.getLogger().handlers:
        handler.addFilter(logging.Filter(name))


def as_json() -> bool:
    """Tell whether this process logs JSON lines."""
    return any(
        isinstance(handler.formatter, structlog.stdlib.ProcessorFormatter)
        and isinstance(handler.formatter.processors[-1], structlog.processors.JSONRenderer)
        for handler in logging.getLogger().handlers
    )


def configured() -> bool:
    """Tell whether this process's logging is set up here."""
    return any(
        isinstance(handler.formatter, structlog.stdlib.ProcessorFormatter)
        for handler in logging.getLogger().handlers
    )


def logger(name: str) -> structlog.stdlib.BoundLogger:
    """A logger; ``name`` is the module's."""
    made: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(name)
    return made


@contextmanager
def bound(
    *,
    query: str | None = None,
    run: str | None = None,
    batch: int | None = None,
    rule: str | None = None,
) -> Iterator[None]:
    """Within this block, every line of this thread says which query, run, batch, rule it is of."""
    given = {"query": query, "run": run, "batch": batch, "rule": rule}
    with structlog.contextvars.bound_contextvars(
        **{name: value for name, value in given.items() if value is not None}
    ):
        yield


def new_run_id() -> str:
    """Return an id for a run."""
    return secrets.token_hex(6)


def identify(run: str) -> None:
    """From now on every line of the process that is of no other run says that it is of this one, on
    whatever thread."""
    _PROCESS["run"] = run


def _of_process(_logger: Any, _method: str, event: EventDict) -> EventDict:
    for name, value in _PROCESS.items():
        event.setdefault(name, value)
    return event


def _named(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """A processor for records of Python's logging: their text is no event's name."""
    event["message"] = event.pop("event")
    event["event"] = event.pop(EVENT_NAME, LIBRARY_LOG)
    for name in _RESERVED:
        if f"{name}_" in event:
            event[name] = event.pop(f"{name}_")
    return event


def _without_controls(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """A processor for a terminal: what texts of others hold must not move its cursor."""
    return {
        name: printable_lines(value) if isinstance(value, str) else value
        for name, value in event.items()
    }


def _for_people(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """A processor for a terminal: the local time of day, and what a person reads of a line."""
    moment = datetime.fromisoformat(event["timestamp"]).astimezone()
    shown = {**event, "timestamp": f"{moment:%H:%M:%S}"}
    if event["event"] not in _OF_LIBRARIES:
        shown.pop("logger", None)
    return {
        name: ", ".join(f"{key} {item}" for key, item in value.items())
        if isinstance(value, Mapping)
        else value
        for name, value in shown.items()
        if name not in _FOR_MACHINES
    }


def mask_secrets(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """A processor of structlog that masks secrets in everything that is logged."""
    return {
        name: value if name in _OWN_KEYS else redact(value, name) for name, value in event.items()
    }
