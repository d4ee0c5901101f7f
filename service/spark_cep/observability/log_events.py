"""Every event that the service logs: a closed, typed list; there are no others.

An event's name is stable: what reads logs goes by it. Values are ids, counts, durations, names of
topics and rules, and reasons; of an event's own content there is nothing at ``info`` or above.
``docs/logs.md`` is written from here (``python -m spark_cep.observability.log_events``).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class LogEvent:
    """One event: ``levels`` that it is logged at, ``values`` that its lines have of their own."""

    name: str
    levels: tuple[str, ...]
    meaning: str
    values: tuple[str, ...] = ()


_DEBUG, _INFO, _WARNING, _ERROR = ("debug",), ("info",), ("warning",), ("error",)
_ANY: Final = ("any",)
_WAITED: Final = ("reason", "attempt", "waited_seconds", "left_seconds")

LIBRARY_LOG: Final = LogEvent(
    "library_log",
    _ANY,
    "a Python library logged or warned; `logger` says which",
    ("message",),
)
SPARK_LOG: Final = LogEvent(
    "spark_log",
    _ANY,
    "Spark or another Java library logged; `query` and `batch` are given where Spark says them",
    ("message", "thread", "exception"),
)
SPARK_OUTPUT: Final = LogEvent(
    "spark_output",
    ("debug", "warning"),
    "the Java process or a Python worker wrote a line past any logging; `debug` where Spark always"
    " does",
    ("message",),
)

DRIVER_OUTPUT: Final = LogEvent(
    "driver_output",
    _WARNING,
    "Python code of the service's process wrote a line to standard error, or a thread or a server"
    " of it had an exception",
    ("message", "exception"),
)

EVENTS: Final[tuple[LogEvent, ...]] = (
    LogEvent(
        "rule_warning",
        _WARNING,
        "a rule runs, but costs much or may not do what is meant",
        ("rule", "step", "text"),
    ),
    LogEvent(
        "control_record_not_written",
        _WARNING,
        "what the driver says of event time cannot be written; event time stands until it can",
        ("reason",),
    ),
    LogEvent(
        "scratch_folder_left",
        _WARNING,
        "a scratch folder of an earlier run is nested too deep to be removed; remove it by hand",
        ("folder",),
    ),
    LogEvent("topics_created", _INFO, "missing output topics were made", ("topics",)),
    LogEvent(
        "topic_not_described",
        _WARNING,
        "a topic's `max.message.bytes` may not be asked for; 1,000,000 is taken",
        ("topic", "reason"),
    ),
    LogEvent(
        "rule_loaded",
        _INFO,
        "an enabled rule is checked, and runs from the next batch on",
        ("rule", "version"),
    ),
    LogEvent(
        "rule_removed",
        _INFO,
        "a rule, or this version of it, does not run from the next batch on",
        ("rule", "version"),
    ),
    LogEvent(
        "rule_rejected",
        _ERROR,
        "a rule, or a file of rules, is wrong and does not run; the version before it does, if"
        " there is one",
        ("rule", "text"),
    ),
    LogEvent(
        "rule_set_aside",
        _ERROR,
        "the first batch with this rule failed in three runs; it does not run until its text"
        " changes",
        ("rule", "version", "reason"),
    ),
    LogEvent(
        "rules_not_read",
        _ERROR,
        "the source of the rules cannot be read; the rules that run go on",
        ("text",),
    ),
    LogEvent(
        "rules_begin",
        _INFO,
        "the first batch of the run, or the first one under another rule set, begins: the set's"
        " number in the checkpoint, and how many rules it has",
        ("number", "rules"),
    ),
    LogEvent(
        "commit_markers_disagree",
        _WARNING,
        "output and checkpoint disagree, and `outputs.if_commit_markers_disagree` says to go on",
        ("reason", "topic"),
    ),
    LogEvent(
        "query_started",
        _INFO,
        "at the start, and again when schemas were learnt or Kafka was unavailable",
        ("checkpoint",),
    ),
    LogEvent(
        "started",
        _INFO,
        "the first batch is committed; `seconds` since the process began, by phase, and at which"
        " second what is done in threads meanwhile was done",
        ("seconds", "phases", "meanwhile"),
    ),
    LogEvent("batch_started", _DEBUG, "a batch begins"),
    LogEvent(
        "batch_done",
        _INFO,
        "a batch's output is committed",
        ("records", "matches", "match_rows", "timeouts", "late", "dead_letters", "seconds"),
    ),
    LogEvent(
        "rule_state_dropped",
        ("info", "warning", "error"),
        "what a rule held that was changed, removed or paused, or has drained, is gone; a warning"
        " where it was changed without a new version, or was to be carried over to a version that"
        " does not have its state; an error where more than four versions would have drained",
        ("version", "partial_matches", "reason"),
    ),
    LogEvent(
        "rule_paused",
        _WARNING,
        "a rule takes no part until it is resumed; `by`: who paused it, also the circuit breaker",
        ("version", "by", "reason"),
    ),
    LogEvent(
        "rule_status_not_written",
        _WARNING,
        "the status topic does not have the states of rules, and is tried again; once until it has",
        ("reason",),
    ),
    LogEvent("rule_resumed", _INFO, "a rule that was paused takes part again", ("version",)),
    LogEvent(
        "schemas_learnt",
        _INFO,
        "new schemas were met, by id in Avro; `unknown` are those that the registry does not know",
        ("schemas", "unknown"),
    ),
    LogEvent(
        "waiting_for_kafka",
        _WARNING,
        "at the start, an attempt got no answer; while the job runs, once when Kafka is"
        " unavailable, and for each query that fails for it although Kafka answers",
        _WAITED,
    ),
    LogEvent(
        "kafka_back", _INFO, "Kafka answers again while the job runs", ("unavailable_seconds",)
    ),
    LogEvent("waiting_for_registry", _WARNING, "an attempt got no answer", _WAITED),
    LogEvent(
        "waiting_for_rules",
        _WARNING,
        "at a first start, an attempt to read the table or URL of the rules got no answer",
        _WAITED,
    ),
    LogEvent(
        "offsets_not_committed",
        _WARNING,
        "Kafka does not take the offsets of the consumer group; the job goes on. Said once, until"
        " it works again",
        ("group", "reason"),
    ),
    LogEvent("stopping", _INFO, "a signal came", ("signal",)),
    LogEvent(
        "batch_given_up",
        _ERROR,
        "told to stop, and the batch did not end within the grace period",
        ("grace_seconds",),
    ),
    LogEvent("stopped", _INFO, "the query has ended in good order"),
    LogEvent(
        "ended",
        ("info", "error"),
        "the last line of a run: [exit code](operations.md#exit-codes) and its name, why, what to"
        " do, the batch that was written last (`null`: none in this run); `problems` of settings or"
        " rules, `exception` of an internal error",
        ("exit_code", "name", "reason", "advice", "last_batch", "problems", "exception"),
    ),
    LogEvent(
        "batch_repeated", _INFO, "`rescale` does the batch that the job left undone", ("batch",)
    ),
    LogEvent(
        "rescale_not_taken_back",
        _ERROR,
        "`rescale` failed, and what it had written could not be removed",
        ("exception",),
    ),
    SPARK_LOG,
    SPARK_OUTPUT,
    DRIVER_OUTPUT,
    LIBRARY_LOG,
)
"""All events, in the order of the documentation."""

_HEAD: Final = """\
# Logs

<!-- Written by `python -m spark_cep.observability.log_events`; change the list there. -->

One JSON object a line on standard output: the service's own lines, those of Python libraries, those
of Spark and of other Java libraries in the driver, and what Python workers write. With
`observability.log_format: console`, or on a terminal, the same lines are text for people.
`observability.log_level` holds for all of them but the last, `ended`. With JSON nothing else is
written, to standard error neither; with text, errors that end the process are there as well, as
`error: …`. Until the settings are read the form is that of `auto`.

| value | on | what it is |
| --- | --- | --- |
| `timestamp` | every line | UTC, ISO 8601 |
| `level` | every line | `debug`, `info`, `warning`, `error`, `critical` |
| `logger` | every line | who says it: a module, a library's logger, a Java class |
| `event` | every line | a name of the list below |
| `run` | what belongs to one run of the service | 12 hexadecimal digits, new at each start |
| `query` | what belongs to one query | Spark's id of it; the same for the life of a checkpoint |
| `batch` | what belongs to one batch | its number |
| `rule` | what belongs to one rule | its id |

Secrets are masked by name, by type and inside texts, in Spark's lines too. The content of events
(keys, columns, bytes) is in no line at `info` or above; dead letters have it, in their topic.

Executors in processes of their own write to their own standard error, which Spark or Kubernetes
collects: the service does not see it.

| event | level | when | values |
| --- | --- | --- | --- |
"""


def render_reference() -> str:
    """The text of ``docs/logs.md``."""
    rows = []
    for event in EVENTS:
        values = ", ".join(f"`{value}`" for value in event.values)
        rows.append(
            f"| `{event.name}` | {', '.join(event.levels)} | {event.meaning} | {values} |\n"
        )
    return _HEAD + "".join(rows)


if __name__ == "__main__":
    sys.stdout.write(render_reference())
