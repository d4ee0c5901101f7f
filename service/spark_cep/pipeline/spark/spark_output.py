"""The output of Spark's Java process and its Python workers, taken into the service's own log.

Log4j writes JSON lines (``log4j2.properties``); workers, native libraries and the Java virtual
machine itself write text. Both come through one pipe, and leave as lines of the service's log: of
one form, masked, with the run that they belong to. A command that has no log, as ``spark-cep
state``, shows them as text on standard error.
"""

from __future__ import annotations

import contextvars
import json
import logging
import os
import re
import threading
from typing import Any, Final

from spark_cep.config.redaction import redact
from spark_cep.observability.logs import EVENT_NAME, configured

_log = logging.getLogger(__name__)
_STANDARD_ERROR: Final = 2
_LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
}
#: Names of ours for what Spark knows of a line.
_CONTEXT: Final = {"query_id": "query", "batch_id": "batch", "executor_id": "executor"}
#: What Spark and Java write at every start or query: of no use to anybody.
_CHATTER: Final = (
    "Starting Streaming TransformWithStateInPandas Python worker",
    "Streaming TransformWithStateInPandas Python worker",
    "WARNING: Using incubator modules",
    "Picked up JAVA_TOOL_OPTIONS",
    "1 compiler directives added",
)


_OUT_OF_MEMORY: Final = re.compile(
    r"Terminating due to java\.lang\.OutOfMemoryError: (.+)"
    r"|# (?:Native memory allocation|There is (insufficient memory)).*"
)
_memory: Final[list[str]] = []
_told_of_memory: Final = threading.Event()


def memory_that_ran_out(seconds: float = 0) -> str | None:
    """The memory that Java said, as its last word, it has run out of, as "Java heap space"; None
    when it has not said so, within ``seconds``."""
    _told_of_memory.wait(seconds)
    return _memory[0] if _memory else None


def _look_for_memory(line: str) -> None:
    found = _OUT_OF_MEMORY.match(line)
    if found is not None:
        _memory[:] = [found[1] or "the machine's"]
        _told_of_memory.set()


def take_in(read: int) -> None:
    """Log, in a thread, what comes through a pipe whose other end is the standard output and error
    of the Java process, until that and all that inherited it have ended."""
    context = contextvars.copy_context()  # with the run
    threading.Thread(
        target=lambda: context.run(_relay, read), name="spark-output", daemon=True
    ).start()


def _relay(read: int) -> None:
    with os.fdopen(read, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if text := line.strip():
                _look_for_memory(text)
                if configured():
                    tell(text)
                elif shown := as_text(text):
                    os.write(_STANDARD_ERROR, redact(shown).encode() + b"\n")


def tell(line: str) -> None:
    """Log one line that Spark's processes wrote."""
    said = _parsed(line)
    if said is None:
        level = logging.DEBUG if line.startswith(_CHATTER) else logging.WARNING
        _log.log(level, "%s", line, extra={EVENT_NAME: "spark_output"})
        return
    extra: dict[str, Any] = {EVENT_NAME: "spark_log"}
    for name in ("thread", "exception"):
        if said.get(name):
            extra[f"{name}_"] = said[name]
    for name, value in (said.get("mdc") or {}).items():
        if name in _CONTEXT:
            extra[_CONTEXT[name]] = int(value) if value.isdecimal() else value
    level = _LEVELS.get(said["level"], logging.WARNING)
    logging.getLogger(said["logger"]).log(level, "%s", said["message"], extra=extra)


def as_text(line: str) -> str:
    """One line that Spark's processes wrote, for people; empty for what they always write."""
    said = _parsed(line)
    if said is None:
        return "" if line.startswith(_CHATTER) else line
    parts = (f"{said['level']}: {said['logger']}: {said['message']}", said.get("exception"))
    return "\n".join(part for part in parts if part)


def _parsed(line: str) -> dict[str, Any] | None:
    if not line.startswith("{"):
        return None
    try:
        said = json.loads(line)
    except ValueError:
        return None
    return (
        said if isinstance(said, dict) and {"level", "logger", "message"} <= said.keys() else None
    )
