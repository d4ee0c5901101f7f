"""The shape of test cases: keys, types and plain values, as pydantic models.

The JSON Schema of a case file (``schemas/cases.schema.json``) is made from them, and each field's
description is what an error message gives as allowed.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeVar

from pydantic import Discriminator, Field, PlainValidator, Tag, model_validator

from spark_cep.documents.values import contradiction, refused
from spark_cep.durations import ALLOWED, DurationError, parse_duration
from spark_cep.event_times import instant_us
from spark_cep.pattern.document.shape import (
    DocumentShape,
    Duration,
    Instant,
    OneOrMany,
    OneOrMapping,
    Text,
)

NOTHING: Final = "none"
BEGINNING: Final = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * 1_000
"""Where the clock of a case begins, unless it says."""

_MOST_REPEATED = 10_000
_ALLOWED_TIMES = (
    "a duration from the case's start, such as `90 s`; with a sign, from the event before, such as"
    f" `+10 s`; or a timestamp such as `2026-01-01T00:01:30Z`; a duration is {ALLOWED}"
)


class When(NamedTuple):
    """A time of a case in microseconds: from its ``start``, from the event before (``step``), or
    since 1970 (``instant``)."""

    origin: Literal["start", "step", "instant"]
    micros: int

    def micros_since_1970(self, start: int, before: int) -> int:
        """Return the time, given the case's start and the time of the event before."""
        return self.micros + {"start": start, "step": before, "instant": 0}[self.origin]


def when(value: object) -> When:
    """Return the time that a document names; raises the error of :func:`refused`."""
    if isinstance(value, date):
        return When("instant", instant_us(value))
    if not isinstance(value, str):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        raise refused(_ALLOWED_TIMES, "is not a time" + (": its unit is missing" * number))
    text = value.strip()
    signed = text[:1] in ("+", "-")
    try:
        micros = parse_duration(text[1:] if signed else text) * 1_000
        return When("step" if signed else "start", -micros if text[:1] == "-" else micros)
    except DurationError:
        pass
    try:
        return When("instant", instant_us(text))
    except ValueError:
        raise refused(_ALLOWED_TIMES, "is not a time") from None


Time = Annotated[When, PlainValidator(when, json_schema_input_type=str)]
Reference = Annotated[int, Field(ge=1)] | Text
"""The name of an event, or its number among those that the case sends, from 1."""

_References = Annotated[
    Annotated[Reference, Tag("<one>")] | Annotated[list[Reference], Tag("<many>")],
    Discriminator(lambda value: "<many>" if isinstance(value, list) else "<one>"),
]
_Result = TypeVar("_Result")
_Results = Annotated[
    Annotated[Literal["none"], Tag("<one>")] | Annotated[list[_Result], Tag("<many>")],
    Discriminator(lambda value: "<one>" if isinstance(value, str) else "<many>"),
]
_EVENTS = "events by name, or by number from 1"


class CaseStepShape(DocumentShape):
    """One step of a case: an event, or a move of the clock or the watermark."""

    send: dict[str, Any] | None = Field(
        default=None, description="the event's columns, `column: value`; others are NULL"
    )
    at: Time | None = Field(
        default=None,
        description=f"with `send`: the event's time (default: the clock's): {_ALLOWED_TIMES}",
    )
    name: Text | None = Field(
        default=None,
        description="with `send`: the event's name, for `expect`; with `times`, `name-1`, `name-2`"
        " and so on",
    )
    input: Text | None = Field(
        default=None, description="with `send`: the input, where the rules read several"
    )
    of_type: Text | None = Field(
        default=None, description="with `send`: the record type, in an input with several"
    )
    times: Annotated[int, Field(ge=1, le=_MOST_REPEATED)] | None = Field(
        default=None, description=f"with `send`: so many such events, from 1 to {_MOST_REPEATED}"
    )
    every: Duration | None = Field(
        default=None, description=f"with `times`: the time from one to the next: {ALLOWED}"
    )
    clock: Time | None = Field(
        default=None,
        description="in place of `send`: the time that the clock moves to, and the watermark behind"
        f" it: {_ALLOWED_TIMES}",
    )
    watermark: Time | None = Field(
        default=None,
        description="in place of `send`: the time that the watermark moves to alone: events at or"
        f" before it are late from then on: {_ALLOWED_TIMES}",
    )

    @model_validator(mode="after")
    def _one_step(self) -> CaseStepShape:
        given = [name for name in ("send", "clock", "watermark") if name in self.model_fields_set]
        if len(given) != 1:
            raise contradiction("exactly one of `send`, `clock` and `watermark` is needed")
        beside = self.model_fields_set - {*given}
        if given != ["send"] and beside:
            raise contradiction(
                f"`{min(beside)}` belongs to `send`, and this is `{given[0]}`", min(beside)
            )
        if "every" in beside and "times" not in beside:
            raise contradiction("`every` is the time between several: `times` is missing", "every")
        return self


class _OfRule(DocumentShape):
    """An expected result of a rule. Each key that is left out may be anything."""

    rule: Text | None = Field(default=None, description="the rule's id")
    key: Any = Field(default=None, description="the key; `null` for none")


class _OfEvents(_OfRule):
    """An expected result with the events that it has taken."""

    version: int | None = Field(default=None, description="the rule's version, a number")
    steps: dict[str, _References] | None = Field(
        default=None,
        description=f"for each step, or variable, its {_EVENTS}, in the order taken; `[]` for none",
    )


class MatchShape(_OfEvents):
    """An expected match."""

    at: Time | None = Field(default=None, description=f"the match's time: {_ALLOWED_TIMES}")
    start: Time | None = Field(
        default=None, description=f"the time of the first event: {_ALLOWED_TIMES}"
    )
    measures: dict[str, Any] | None = Field(
        default=None, description="measures by name; those that are left out may be anything"
    )


class TimeoutShape(MatchShape):
    """An expected timeout; its `at` is the deadline."""

    already_matched: bool | None = Field(
        default=None, description="`true`: its events, or the first of them, were a match"
    )


class RowShape(_OfRule):
    """An expected row of a rule with ALL ROWS PER MATCH."""

    row: int | None = Field(default=None, description="the row's place in its match, from 1")
    variable: Text | None = Field(default=None, description="the variable that took the event")
    event: Reference | None = Field(default=None, description=f"one of the {_EVENTS}")
    columns: dict[str, Any] | None = Field(
        default=None, description="columns of the result; those that are left out may be anything"
    )


class DeadLetterShape(_OfRule):
    """An expected dead letter."""

    event: Reference | None = Field(default=None, description=f"one of the {_EVENTS}")
    reason: Text | None = Field(default=None, description="the reason, as in docs/output.md")
    step: Text | None = Field(default=None, description="the step whose condition failed")


class PartialMatchShape(_OfEvents):
    """An expected partial match that is live at the end of the case."""

    until: Time | None = Field(default=None, description=f"its deadline: {_ALLOWED_TIMES}")
    waits_for: OneOrMany[Text] | None = Field(
        default=None, description="the steps that could take the next event"
    )


class ExpectShape(DocumentShape):
    """The results that a case expects: of each kind that is written, exactly so many."""

    matches: _Results[MatchShape] | None = Field(
        default=None, description="a list of matches, or `none`"
    )
    rows: _Results[RowShape] | None = Field(
        default=None, description="a list of rows (ALL ROWS PER MATCH), or `none`"
    )
    timeouts: _Results[TimeoutShape] | None = Field(
        default=None, description="a list of timeouts, or `none`"
    )
    late: _Results[Reference] | None = Field(
        default=None, description=f"a list of late {_EVENTS}; or `none`"
    )
    dead_letters: _Results[DeadLetterShape] | None = Field(
        default=None, description="a list of dead letters, or `none` (default)"
    )
    partial_matches: _Results[PartialMatchShape] | None = Field(
        default=None, description="a list of live partial matches, or `none`"
    )


Expectation = OneOrMapping[Literal["none"], ExpectShape]
_Step = OneOrMapping[Literal["restart", "finish"], CaseStepShape]


class CaseShape(DocumentShape):
    """One case: what happens, and what is expected of the rules."""

    case: Text = Field(description="the case's name, unique in its file")
    start: Instant = Field(
        default=BEGINNING,
        description="the time at which the clock begins (default 2026-01-01T00:00:00Z), a timestamp"
        " such as `2030-01-31T00:00:00Z`",
    )
    allowed_disorder: Duration = Field(
        default=0, description=f"as `time.allowed_disorder` of a job (default 0 ms): {ALLOWED}"
    )
    event_time: Text | None = Field(
        default=None, description="the column with the event's time, filled in where it is left out"
    )
    rule: Text | None = Field(
        default=None, description="the id of the only rule that takes part; default: all"
    )
    events: list[_Step] = Field(
        description="a list of events and what happens between them: `send`, `clock`, `watermark`,"
        " `restart`, `finish`"
    )
    expect: Expectation = Field(
        description="`none`, or lists of `matches`, `rows`, `timeouts`, `late`, `dead_letters`,"
        " `partial_matches`; what is not written is not compared, but for dead letters"
    )


class CaseFileShape(DocumentShape):
    """Cases of spark-cep's rules: events in, expected results beside them."""

    rules: OneOrMany[Text] | None = Field(
        default=None,
        description="the rule file, or a list of them, from this file's folder; default: the one of"
        " this file's name (`NAME.yaml` of `NAME.cases.yaml`)",
    )
    schemas: OneOrMapping[Text, dict[str, Text]] | None = Field(
        default=None,
        description="the schema file of the events (Avro, JSON Schema, `FILE.proto` or"
        " `FILE.proto:MESSAGE`), or for each input its own; default: the .avsc files beside, or"
        " without any the .proto files, each of its input's name, or the only one",
    )
    event_time: Text | None = Field(
        default=None, description="`event_time` of all cases that have none"
    )
    cases: Annotated[list[CaseShape], Field(min_length=1)] = Field(description="a list of cases")


class CasesInRule(DocumentShape):
    """The cases in a rule's document."""

    cases: Annotated[list[CaseShape], Field(min_length=1)] = Field(description="a list of cases")


def written(shape: DocumentShape) -> Mapping[str, Any]:
    """The keys that a part of a document has, with their values, in the order of its shape."""
    given = (name for name in type(shape).model_fields if name in shape.model_fields_set)
    return MappingProxyType({name: getattr(shape, name) for name in given})
