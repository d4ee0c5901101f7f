"""The shape of a rule document: keys, types and plain values, as pydantic models.

The models say what may stand where; the JSON Schema (``rule_schema``) is made from them, and each
field's description is what an error message gives as allowed. What a value means, and which values
fit together, is not decided here: see ``document`` and ``validation``.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainValidator,
    Tag,
    WithJsonSchema,
    model_validator,
)

from spark_cep.documents.values import contradiction, duration, refused
from spark_cep.durations import ALLOWED as ALLOWED_DURATIONS
from spark_cep.event_times import instant_us
from spark_cep.pattern.tree import MOST_COUNTED, MOST_VERSION, Limits, PreviousVersion
from spark_cep.pattern.ververica.format import NodeShape

_TIMES = re.compile(r"\s*(-?\d{1,9})\s*(?:(\+)|\.\.\s*(-?\d{1,9})\s*)?\s*")
_ALLOWED_TIMES = "`3` (exactly), `2..4` (from, to), `2+` (or more), `0..2` (none or up to two)"
_ALLOWED_INSTANTS = "an ISO 8601 timestamp such as `2030-01-31T00:00:00Z`; without a zone it is UTC"


class Repetitions(NamedTuple):
    """``times`` as written: ``minimum`` may still be 0 here, ``maximum`` ``None`` is no end."""

    minimum: int
    maximum: int | None


def _instant(value: object) -> int:
    """The milliseconds since 1970 of an ISO 8601 timestamp, rounded down."""
    try:
        return instant_us(value) // 1_000
    except ValueError:
        raise refused(_ALLOWED_INSTANTS, "is not a timestamp") from None


def _times(value: object) -> Repetitions:
    """The repetitions that ``3``, ``"3"``, ``"2..4"`` or ``"2+"`` name."""
    plain = isinstance(value, int | str) and not isinstance(value, bool)
    match = _TIMES.fullmatch(str(value)) if plain else None
    if match is None:
        raise refused(_ALLOWED_TIMES, "is not a number of repetitions")
    minimum = int(match[1])
    if match[2]:
        return Repetitions(minimum, None)
    return Repetitions(minimum, int(match[3]) if match[3] else minimum)


def _condition(value: object) -> object:
    """A condition; of several it is not clear how they belong together."""
    if isinstance(value, list):
        raise refused("one SQL condition, of several joined by AND or OR: `a = 1 AND b = 2`")
    return value


def _form(value: object) -> str:
    """Return the written form of a value; the tags are no part of any path."""
    if isinstance(value, dict):
        return "<mapping>"
    return "<many>" if isinstance(value, list) else "<one>"


Text = Annotated[str, Field(min_length=1)]
Condition = Annotated[Text, BeforeValidator(_condition)]
Duration = Annotated[int, PlainValidator(duration, json_schema_input_type=str)]
Instant = Annotated[int, PlainValidator(_instant, json_schema_input_type=str)]
TimesField = Annotated[
    Repetitions,
    PlainValidator(_times),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1},
                {"type": "string", "pattern": r"^\s*[0-9]+\s*(\+|\.\.\s*[0-9]+)?\s*$"},
            ]
        }
    ),
]
_One = TypeVar("_One")
_Mapping = TypeVar("_Mapping")
_Many = Annotated[list[Text], Tag("<many>"), Field(min_length=1)]
OneOrMany = Annotated[Annotated[_One, Tag("<one>")] | _Many, Discriminator(_form)]
OneOrMapping = Annotated[
    Annotated[_One, Tag("<one>")] | Annotated[_Mapping, Tag("<mapping>")],
    Discriminator(lambda value: "<mapping>" if isinstance(value, dict) else "<one>"),
]
Count = Annotated[int, Field(ge=1, le=MOST_COUNTED)]
Version = Annotated[int, Field(ge=1, le=MOST_VERSION)]


class DocumentShape(BaseModel):
    """Base of all shapes: unknown keys are refused, and nothing is converted silently."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class WithinShape(DocumentShape):
    """The window, with each of its parts named."""

    max: Duration | None = Field(
        default=None, description=f"longest time from first to last event: {ALLOWED_DURATIONS}"
    )
    gap: Duration | None = Field(
        default=None,
        description=f"longest time from previous to current event: {ALLOWED_DURATIONS}",
    )


class SkipToShape(DocumentShape):
    """A skip strategy that names a step."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [{"required": ["skip_to_first"]}, {"required": ["skip_to_last"]}]
        }
    )

    skip_to_first: Text | None = Field(
        default=None, description="the name of the step whose first event matching goes on from"
    )
    skip_to_last: Text | None = Field(
        default=None, description="the name of the step whose last event matching goes on from"
    )
    on_miss: Literal["error"] | None = Field(
        default=None,
        description="`error`: a match without an event of that step is an error;"
        " absent: such a match skips nothing",
    )

    @model_validator(mode="after")
    def _one_target(self) -> SkipToShape:
        if (self.skip_to_first is None) == (self.skip_to_last is None):
            raise contradiction("exactly one of `skip_to_first` and `skip_to_last` is needed")
        return self


class EmitShape(DocumentShape):
    """The content of an output record."""

    measures: dict[str, Text] = Field(
        default_factory=dict,
        description="for each measure its name and a SQL expression over the matched events,"
        " such as `COUNT(fail.*)`",
    )
    events: OneOrMany[Literal["all", "none"]] | None = Field(
        default=None,
        description="what travels with a match of each event: `all` (its original bytes), `none`"
        " (default), or a list of columns",
    )


class LimitsShape(DocumentShape):
    """Limits of the state of one key for one rule."""

    partial_matches: Count = Field(
        default=Limits().partial_matches,
        description="most partial matches per key: a number from 1",
    )
    events: Count = Field(
        default=Limits().events, description="most events held per key: a number from 1"
    )
    matches: Count = Field(
        default=Limits().matches,
        description="most matches that one event completes per key: a number from 1",
    )
    work: Count = Field(
        default=Limits().work,
        description="most steps of work that one event of a key costs: a number from 1",
    )
    on_limit: Literal["drop_oldest", "reject_new", "pause_rule"] = Field(
        default=Limits().on_limit.value,
        description="what to do beyond a limit: `drop_oldest`, `reject_new` or `pause_rule`",
    )


class StepShape(DocumentShape):
    """One step of a pattern, or a group of steps."""

    step: Text = Field(
        description="the step's name: letters, digits and `_`, not beginning with a digit, unique"
        " in the rule, groups included"
    )
    after: (
        Literal["next", "followed_by", "followed_by_any", "not_next", "not_followed_by"] | None
    ) = Field(
        default=None,
        description="how the step stands to the one before: `next`, `followed_by`,"
        " `followed_by_any`, `not_next` or `not_followed_by`; absent on the first step",
    )
    where: Condition | None = Field(
        default=None, description="a SQL condition over the event's columns; absent: every event"
    )
    of_type: Text | None = Field(
        default=None,
        description="the record type that the event must have, in an input with several",
    )
    times: TimesField | None = Field(
        default=None, description=f"how often the step repeats: {_ALLOWED_TIMES}"
    )
    gap: Duration | None = Field(
        default=None, description=f"longest time between two repetitions: {ALLOWED_DURATIONS}"
    )
    loop: Literal["relaxed", "consecutive", "combinations"] | None = Field(
        default=None,
        description="contiguity between repetitions: `relaxed` (default), `consecutive` or"
        " `combinations`",
    )
    greedy: bool = Field(
        default=False, description="`true`: the loop takes as many events as it can"
    )
    optional: bool = Field(default=False, description="`true`: the step may be left out")
    until: Condition | None = Field(
        default=None, description="a SQL condition; the event that satisfies it ends the loop"
    )
    group: Annotated[list[StepShape], Field(min_length=1)] | None = Field(
        default=None, description="a list of steps that repeats as one, instead of `where`"
    )


class RuleFields(DocumentShape):
    """Fields of every rule, whatever its language."""

    id: Text = Field(description="the rule's name: letters, digits, `_`, `-` and `.`")
    version: Version = Field(
        default=1,
        description="a number from 1 to 2147483647; a higher version replaces a lower one",
    )
    previous_version: Literal["restart", "drain", "carry"] = Field(
        default=PreviousVersion.RESTART.value,
        description="what becomes of the partial matches of the lower version that this one"
        " replaces: `restart` (default; they end without output), `drain` (the old version finishes"
        " what it has begun) or `carry` (they go on as this version's, where it has their state)",
    )
    drain_limit: Duration | None = Field(
        default=None,
        description="with `previous_version: drain`, how long the old version may go on behind the"
        " newest event that it may begin a match with, in event time (default: its `within`, or 1"
        f" day where it has none): {ALLOWED_DURATIONS}",
    )
    description: str = Field(default="", description="text for people")
    annotations: dict[str, Text] = Field(
        default_factory=dict,
        description="for each annotation its name and a text, such as a link to the run-book, that"
        " matches and timeouts carry; `{key}`, `{rule_id}` and names of measures are filled in",
    )
    enabled: bool = Field(default=True, description="`true` (default) or `false`")
    mode: Literal["live", "shadow"] = Field(
        default="live",
        description="`live` (default), or `shadow`: results go to a topic of their own",
    )
    effective_from: Instant | None = Field(
        default=None,
        description=f"the event time from which the rule runs: {_ALLOWED_INSTANTS}",
    )
    limits: LimitsShape = Field(
        default_factory=LimitsShape,
        description="most `partial_matches` and `events` per key, most `matches` and `work` of one"
        " event, and `on_limit`",
    )
    cases: list[dict[str, Any]] | None = Field(
        default=None,
        description="test cases, for `spark-cep test`; they are no part of what runs",
    )


class RuleShape(RuleFields):
    """A rule of spark-cep: what to look for in a stream of events, and what to say about it."""

    events: OneOrMany[Text] | None = Field(
        default=None, description="the name of an input, or a list of them; absent: the only one"
    )
    key: OneOrMany[Text] | None = Field(
        default=None,
        description="a SQL expression over the event, or a list of them; absent: all events"
        " belong together",
    )
    pattern: Annotated[list[StepShape], Field(min_length=1)] = Field(
        description="a list of steps, the first event's first"
    )
    ververica: (
        Annotated[
            Annotated[NodeShape, Tag("<mapping>")] | Annotated[Text, Tag("<one>")],
            Discriminator(lambda value: "<one>" if isinstance(value, str) else "<mapping>"),
        ]
        | None
    ) = Field(
        default=None,
        description="in place of `pattern`, `within` and `after_match`: a pattern of Ververica's"
        " dynamic CEP, as JSON or as text in JSON",
    )
    java_classes: dict[str, Text] | None = Field(
        default=None,
        description="with `ververica`: for each Java class of a condition its SQL condition,"
        " `$1`, `$2` … for its arguments",
    )
    within: OneOrMapping[Duration, WithinShape] | None = Field(
        default=None,
        description="the window: a duration from first to last event such as `10 minutes`, or"
        " `max` (first to last) and `gap` (previous to current)",
    )
    after_match: (
        OneOrMapping[Literal["no_skip", "skip_to_next", "skip_past_last_event"], SkipToShape] | None
    ) = Field(
        default=None,
        description="`no_skip` (default), `skip_to_next`, `skip_past_last_event`,"
        " `skip_to_first: STEP` or `skip_to_last: STEP`",
    )
    emit: EmitShape = Field(
        default_factory=EmitShape, description="what a match carries: `measures` and `events`"
    )
    cooldown: Duration | None = Field(
        default=None, description=f"after a match no other one of that key for: {ALLOWED_DURATIONS}"
    )


class SqlRuleShape(RuleFields):
    """A rule whose pattern is a statement in SQL."""

    sql: Text = Field(
        description="in place of `events`, `key`, `pattern`, `within`, `after_match`, `emit` and"
        " `cooldown`: a statement in SQL, `SELECT … FROM input MATCH_RECOGNIZE ( … )`",
    )
