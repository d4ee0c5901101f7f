"""The fields of output records, each in one row of one table: name, type, meaning, and where its
value comes from.

The public Avro schemas and the tables in ``docs/output.md`` are written from here
(:mod:`spark_cep.codecs.output.schemas`), and both ways of encoding follow it: of a result that is
an object, and of results that are columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import Literal

from spark_cep.codecs.output.dead_letters import Reason
from spark_cep.codecs.output.record_shape import FieldType, OutputField, Record
from spark_cep.codecs.output.result_columns import Chosen
from spark_cep.match_ids import row_id
from spark_cep.matcher.findings.loops.listed_loop import LISTED_AT_EACH_END

Contract = Literal["match", "match-row", "timeout", "dead-letter"]

_TEXT, _TEXT_OR_NULL, _TIME = FieldType.TEXT, FieldType.OPTIONAL_TEXT, FieldType.TIME
_INT, _LONG = FieldType.INT, FieldType.LONG
_KEY_IN_UTF8 = "key in UTF-8 (none for a rule without a key); the headers"
_EMITTED_AT = OutputField(
    "emitted_at", _TIME,
    "Processing time at which this record was written; differs from run to run.", None,
)  # fmt: skip
_TRAVEL = (
    "Integers are long and floats double. As strings travel: decimals in plain digits, timestamps"
    " and dates in ISO 8601 (UTC with Z where the type has a zone), durations in ISO 8601, integers"
    " beyond 64 bits, and structs, maps and nested arrays as JSON."
)
_SEVERAL_PARTS = (
    "Several key parts are a JSON array of texts, `null` where a part of `PARTITION BY` is NULL;"
    " null where its only column is."
)

_TAKEN_EVENT = Record(
    "TakenEvent",
    "One event of the input, by its place in Kafka, with as much of its content as the rule emits.",
    (
        OutputField("topic", _TEXT, "Topic of the event's record.",
              "at.topic", lambda c: Chosen(c.topics, c.topic)),
        OutputField("partition", _INT, "Partition of the event's record.",
              "at.partition", lambda c: c.partition),
        OutputField("offset", _LONG, "Offset of the event's record.",
              "at.offset", lambda c: c.offset),
        OutputField("time", _TIME, "Event time.", "time", lambda c: c.event_time),
        OutputField("type", _TEXT_OR_NULL, "Full name of the event's record type.",
              "type", lambda c: Chosen(c.types, c.type)),
        OutputField("columns", FieldType.OPTIONAL_VALUES,
              "The columns that the rule emits, by name, with values as in measures; null where it"
              " emits none.",
              "columns", lambda c: c.columns, "`emit.events` lists them."),
        OutputField("payload", FieldType.OPTIONAL_BYTES,
              "The record's original value, framing included, where the rule emits whole events.",
              "payload", lambda c: c.payload, "It does with `emit.events: all`."),
    ),
)  # fmt: skip

_STEP_EVENTS = Record(
    "StepEvents",
    "The events that one step of the pattern took.",
    (
        OutputField("step", _TEXT, "The step's name in the rule.",
              itemgetter(0), lambda c: Chosen(c.steps, c.step)),
        OutputField("events", _TAKEN_EVENT,
              "Its events in the order taken, those of all repetitions together.", itemgetter(1)),
    ),
)  # fmt: skip


def _match_id(what: str) -> OutputField:
    return OutputField(
        "match_id", _TEXT,
        "32 hexadecimal digits, a function of rule id, rule version, key and the coordinates of the"
        f" events per step: the same {what} has the same id in every run.",
        "match_id", lambda c: Chosen(c.ids, c.row), "[More on it](#match-ids).",
    )  # fmt: skip


def _rule(of: str) -> tuple[OutputField, OutputField]:
    return (
        OutputField("rule_id", _TEXT, f"The rule {of}.",
              "rule_id", lambda c: Chosen(c.rule_ids, c.rule)),
        OutputField("rule_version", _INT, f"The version of the rule {of}.",
              "rule_version", lambda c: c.version),
    )  # fmt: skip


def _key(doc: str) -> OutputField:
    return OutputField(
        "key", _TEXT_OR_NULL, doc, "key", lambda c: Chosen(c.keys, c.key), _SEVERAL_PARTS
    )


def _start(what: str) -> OutputField:
    doc = f"Event time of the first event of the {what}."
    return OutputField("start", _TIME, doc, "start", lambda c: c.start)


_MEASURES = OutputField(
    "measures", FieldType.VALUES, f"The rule's measures by name. {_TRAVEL}", "measures",
    lambda c: c.measures,
)  # fmt: skip
_ANNOTATIONS = OutputField(
    "annotations", FieldType.OPTIONAL_VALUES,
    "The rule's annotations by name: texts, such as a link to a run-book, with values of this"
    " record filled in; null where the rule has none.", "annotations", lambda c: c.annotations,
    "[How they are written](rules.md#annotations).",
)  # fmt: skip
_STEPS = OutputField(
    "steps", _STEP_EVENTS, "The events taken, per step that has any, in the order of the steps.",
    lambda result: result.steps.items(),
)  # fmt: skip
_SHARED_KEY = "The key the events share; null for a rule without a key."
_HEADERS = (
    " spark-cep-rule-id, spark-cep-rule-version, spark-cep-match-id and spark-cep-kind repeat what"
    " routing needs."
)

RECORDS: Mapping[Contract, Record] = {
    "match": Record(
        "Match",
        f"A complete match of a rule. The Kafka key is the match's {_KEY_IN_UTF8}{_HEADERS}",
        (
            _match_id("match"),
            *_rule("that matched"),
            _key(_SHARED_KEY),
            _start("match"),
            OutputField(
                "time",
                _TIME,
                "Event time at which the match was complete: that of its last event, or the"
                " deadline where absence completed it.",
                "time",
                lambda c: c.time,
            ),
            _EMITTED_AT,
            _MEASURES,
            _ANNOTATIONS,
            _STEPS,
        ),
    ),
    "timeout": Record(
        "Timeout",
        "A partial match whose deadline passed. The Kafka key is the partial match's"
        f" {_KEY_IN_UTF8}{_HEADERS}",
        (
            _match_id("partial match"),
            *_rule("that timed out"),
            _key(_SHARED_KEY),
            _start("partial match"),
            OutputField(
                "deadline",
                _TIME,
                "The event time until which the pattern should have been complete: that of the"
                " window or gap, not of the watermark that revealed it.",
                "deadline",
                lambda c: c.time,
            ),
            OutputField(
                "already_matched",
                FieldType.FLAG,
                "Whether a match had taken, by the deadline, just these events, the first of them,"
                " or these and more: another branch matched, or a loop or optional steps went on"
                " waiting.",
                "already_matched",
                lambda c: c.already_matched,
            ),
            OutputField(
                "events_omitted",
                _INT,
                "How many of the events taken are not in `steps`.",
                "events_omitted",
                lambda c: c.events_omitted,
                more="Measures are those of all events.",
                default=0,
            ),
            _EMITTED_AT,
            _MEASURES,
            _ANNOTATIONS,
            OutputField(
                "steps",
                _STEP_EVENTS,
                "The events taken, per step that has any, in the order of the steps; of a step that"
                f" took more than {2 * LISTED_AT_EACH_END}, the first {LISTED_AT_EACH_END} and the"
                f" last {LISTED_AT_EACH_END}.",
                lambda result: result.steps.items(),
            ),
        ),
    ),
    "match-row": Record(
        "MatchRow",
        "A row of the result of a rule in SQL with ALL ROWS PER MATCH: an event of the input, and"
        f" the columns of the result at it. The Kafka key is the row's {_KEY_IN_UTF8}"
        " spark-cep-rule-id, spark-cep-rule-version, spark-cep-match-id (where a match covers the"
        " row) and spark-cep-kind repeat what routing needs.",
        (
            OutputField(
                "row_id",
                _TEXT,
                "32 hexadecimal digits, a function of rule id, rule version, key, match id, row"
                " and the event's coordinates: the same row has the same id in every run.",
                row_id,
                lambda c: Chosen(c.row_ids, c.row),
                more="[More on it](#row-ids).",
            ),
            OutputField(
                "match_id",
                _TEXT_OR_NULL,
                "The id of the match that covers the row, made as that of a match that is written"
                " as one record: all rows of a match have it. Null for a row that no match"
                " covers.",
                "match_id",
                lambda c: Chosen(c.match_ids, c.match),
                more="Such rows are there `WITH UNMATCHED ROWS`.",
            ),
            OutputField(
                "row",
                _INT,
                "The row's place among all rows of the match, from 1: rows that {- -} leaves out"
                " are counted. 1 for a row that no match covers.",
                "row",
                lambda c: c.number,
            ),
            OutputField(
                "variable",
                _TEXT_OR_NULL,
                "The pattern variable to which the event is mapped. Null for the row of an empty"
                " match, and for a row that no match covers.",
                "variable",
                lambda c: Chosen(c.variables, c.variable),
                more="It is what `CLASSIFIER()` gives.",
            ),
            OutputField(
                "rule_id",
                _TEXT,
                "The rule whose result the row belongs to.",
                "rule_id",
                lambda c: Chosen(c.rule_ids, c.rule),
            ),
            OutputField(
                "rule_version",
                _INT,
                "The version of that rule.",
                "rule_version",
                lambda c: c.version,
            ),
            _key("The key of the event's partition; null for a rule without a key."),
            OutputField(
                "topic",
                _TEXT,
                "Topic of the event's record.",
                "event.at.topic",
                lambda c: Chosen(c.topics, c.topic),
            ),
            OutputField(
                "partition",
                _INT,
                "Partition of the event's record.",
                "event.at.partition",
                lambda c: c.partition,
            ),
            OutputField(
                "offset",
                _LONG,
                "Offset of the event's record.",
                "event.at.offset",
                lambda c: c.offset,
            ),
            OutputField(
                "time", _TIME, "Event time of the event.", "event.time", lambda c: c.event_time
            ),
            OutputField(
                "type",
                _TEXT_OR_NULL,
                "Full name of the event's record type.",
                "event.type",
                lambda c: Chosen(c.types, c.type),
            ),
            _EMITTED_AT,
            OutputField(
                "columns",
                FieldType.VALUES,
                f"The columns of the result by name. {_TRAVEL}",
                "columns",
                lambda c: c.columns,
            ),
        ),
    ),
    "dead-letter": Record(
        "DeadLetter",
        "A record, or one event of one rule, that could not be processed; everything after it was."
        " The Kafka key is the original record's key, where that is at hand.",
        (
            OutputField("topic", _TEXT, "Topic of the original record.", "at.topic"),
            OutputField("partition", _INT, "Partition of the original record.", "at.partition"),
            OutputField("offset", _LONG, "Offset of the original record.", "at.offset"),
            OutputField(
                "reason",
                _TEXT,
                f"Why, as one word of a list that may grow: {', '.join(Reason)}.",
                "reason",
            ),
            OutputField(
                "detail", _TEXT, "Why, as a sentence for people; its wording may change.", "detail"
            ),
            OutputField(
                "rule_id",
                _TEXT_OR_NULL,
                "The rule in which it failed; null where no rule was concerned.",
                "rule_id",
            ),
            OutputField(
                "step",
                _TEXT_OR_NULL,
                "The step of the rule in which it failed, where there is one.",
                "step",
            ),
            OutputField(
                "record_key",
                FieldType.OPTIONAL_BYTES,
                "Key of the original record, unchanged.",
                "record_key",
                more="Null where a rule failed.",
            ),
            OutputField(
                "record_value",
                FieldType.OPTIONAL_BYTES,
                "Value of the original record, unchanged; null where it is not at hand, as for an"
                " event of a rule that emits none.",
                "record_value",
                more="Where a rule failed, it is at hand if a rule of the same key has"
                " `emit.events: all`. Null, too, where it is too large.",
            ),
            OutputField(
                "failed_at", _TIME, "Processing time at which this record was written.", None
            ),
        ),
    ),
}
