"""Expectations of a back-test: a YAML file with the results that must, or must not, be there.

::

    unexpected: fail
    expect:
      - {rule: brute-force, matches: 2}
      - {rule: brute-force, key: ann, matches: 1+, measures: {fails: 3}}
      - {rule: order-not-paid, timeouts: 0}
    late: 0
    dead_letters: 0
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from spark_cep.backtest.replay import ReplayedBatch
from spark_cep.documents.model_errors import Explainer
from spark_cep.documents.nearest import instead
from spark_cep.documents.places import Path as Place
from spark_cep.documents.reading import UNREADABLE, Document, read_documents
from spark_cep.documents.shapes import Form, Shape
from spark_cep.documents.values import contradiction, refused
from spark_cep.errors import ConfigurationError, Problem, rendered
from spark_cep.event_times import instant_us, time_text
from spark_cep.matcher.findings.output_values import output_value
from spark_cep.model import Match, Timeout
from spark_cep.rules.rule_set import RuleSet

_RANGE = re.compile(r"(\d+)|(\d+)\+|(\d+)\.\.(\d+)")
_ALLOWED = "a number, a least number as 2+, or both bounds as 2..4"
_ALLOWED_TIME = "a time such as 2026-01-31T12:00:00Z"
_MOST_EXAMPLES = 5
_MOST_BOUND = 1 << 62


@dataclass(frozen=True)
class Bounds:
    """A number from ``least`` to ``most``."""

    least: int
    most: int

    def __contains__(self, count: object) -> bool:
        return isinstance(count, int) and self.least <= count <= self.most

    def __str__(self) -> str:
        if self.most >= _MOST_BOUND:
            return f"{self.least} or more"
        return str(self.least) if self.least == self.most else f"{self.least} to {self.most}"


def _bounds(value: object) -> Bounds:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise refused(_ALLOWED, "is no number")
    found = _RANGE.fullmatch(str(value).strip())
    if found is None:
        raise refused(_ALLOWED, "is no number")
    exact, least, low, high = found.groups()
    if exact is not None:
        return Bounds(int(exact), int(exact))
    if least is not None:
        return Bounds(int(least), _MOST_BOUND)
    if int(low) > int(high):
        raise refused(_ALLOWED, "ends before it begins")
    return Bounds(int(low), int(high))


def _key(value: object) -> object:
    """A key as results have it: YAML takes some for numbers."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _time(value: object) -> int:
    try:
        return instant_us(value) // 1_000
    except ValueError:
        raise refused(_ALLOWED_TIME, "is no time") from None


Key = Annotated[str, BeforeValidator(_key)]
Number = Annotated[Any, BeforeValidator(_bounds)]
Time = Annotated[Any, BeforeValidator(_time)]
OneOf = Literal["fail", "warn", "ignore"]


class _StrictModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Expected(_StrictModel):
    """Results of one rule, narrowed by key, time and measures, and how many there must be."""

    rule: str = Field(description="the id of a rule")
    matches: Number | None = Field(default=None, description=_ALLOWED)
    timeouts: Number | None = Field(default=None, description=_ALLOWED)
    key: Key | None = Field(default=None, description="the key of the results, as text")
    start: Time | None = Field(default=None, description=_ALLOWED_TIME)
    end: Time | None = Field(default=None, description=_ALLOWED_TIME)
    measures: dict[str, Any] = Field(default={}, description="measures, `name: value`")

    @model_validator(mode="after")
    def _one_kind(self) -> Expected:
        if self.matches is not None and self.timeouts is not None:
            raise contradiction("either matches or timeouts; write an entry for each", "timeouts")
        return self

    @property
    def kind(self) -> str:
        """The kind of results."""
        return "match" if self.timeouts is None else "timeout"

    @property
    def bounds(self) -> Bounds:
        """The number of results."""
        given = self.matches if self.timeouts is None else self.timeouts
        return Bounds(1, _MOST_BOUND) if given is None else given

    @property
    def title(self) -> str:
        """The expectation in words."""
        singular, plural = ("match", "matches") if self.kind == "match" else ("timeout", "timeouts")
        what = singular if self.bounds == Bounds(1, 1) else plural
        parts = [f"{self.bounds} {what} of {self.rule}"]
        if self.key is not None:
            parts.append(f"with key {self.key}")
        if self.start is not None:
            parts.append(f"from {time_text(self.start)}")
        if self.end is not None:
            parts.append(f"to {time_text(self.end)}")
        if self.measures:
            parts.append("with " + ", ".join(f"{n} = {v}" for n, v in self.measures.items()))
        return " ".join(parts)

    def selects(self, result: Match | Timeout, time: int) -> bool:
        """Return whether a result of the rule and kind is one of them."""
        return (
            self.key in (None, result.key)
            and (self.start is None or time >= self.start)
            and (self.end is None or time < self.end)
            and all(_has(result.measures, name, value) for name, value in self.measures.items())
        )


def _has(measures: Mapping[str, Any], name: str, value: Any) -> bool:
    if name not in measures:
        return False
    found = output_value(measures[name])
    return found == value or (found is not None and str(found) == str(value))


class ExpectationsShape(_StrictModel):
    """A file of expectations."""

    unexpected: OneOf = Field(
        default="fail", description="`fail`, `warn` or `ignore`: results that no entry expects"
    )
    expect: list[Expected] = Field(default=[], description="entries, each with a `rule`")
    late: Number | None = Field(default=None, description=_ALLOWED)
    dead_letters: Number | None = Field(default=None, description=_ALLOWED)


_ROOT = Shape(Form.SECTION, ExpectationsShape)


def read_expectations(file: Path, rules: RuleSet) -> ExpectationsShape:
    """The expectations of a file, held against the ``rules``. Raises ConfigurationError with
    everything that is wrong."""
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigurationError(f"{file}: cannot be read: {why}") from error
    documents = read_documents(text, str(file))
    if len(documents) != 1 or documents[0].data is UNREADABLE or documents[0].problems:
        problems = [each for one in documents for each in one.problems.values()]
        if not problems:
            found = f"has {len(documents)} documents" if documents else "is empty"
            problems = [
                Problem(
                    f"the file {found}",
                    str(file),
                    allowed="one document, as `expect: [{rule: brute-force, matches: 2}]`",
                )
            ]
        raise ConfigurationError("\n".join(rendered(problems)), problems)
    (document,) = documents
    try:
        shape = ExpectationsShape.model_validate(document.data)
    except ValidationError as error:
        faults = Explainer(_ROOT, _name).faults(error)
        problems = [
            document.places.problem(
                each.message,
                each.path,
                allowed=each.allowed or each.limit or each.description,
                at=each.at,
            )
            for each in faults
        ]
        raise ConfigurationError("\n".join(rendered(problems)), problems) from None
    problems = [*_unknown(shape, document, rules)]
    if problems:
        raise ConfigurationError("\n".join(rendered(problems)), problems)
    return shape


def _name(path: Place) -> str:
    return f"`{'.'.join(map(str, path))}`" if path else "the file"


def _unknown(shape: ExpectationsShape, document: Document, rules: RuleSet) -> Iterator[Problem]:
    known = {one.rule.id: one.rule for one in rules.running}
    for number, each in enumerate(shape.expect):
        rule = known.get(each.rule)
        if rule is None:
            path: Place = ("expect", number, "rule")
            message = f"there is no rule `{each.rule}`"
            yield document.places.problem(message, path, allowed=instead(each.rule, known, "rules"))
            continue
        measures = rule.emit.measures
        for name in each.measures if rule.query is None else ():
            if name not in measures:
                path = ("expect", number, "measures", name)
                message = f"rule `{each.rule}` has no measure `{name}`"
                allowed = instead(name, measures, "measures")
                yield document.places.problem(message, path, allowed=allowed)


@dataclass(frozen=True)
class ExpectationVerdict:
    """One expectation after the run. ``wrong``: why it is not met; a ``warning`` fails nothing."""

    title: str
    wrong: str | None = None
    warning: bool = False

    @property
    def failed(self) -> bool:
        """Return whether the run is not as expected."""
        return self.wrong is not None and not self.warning


@dataclass
class Expectations:
    """Counts the results of a run against its expectations."""

    shape: ExpectationsShape
    _counts: list[int] = field(init=False)
    _others: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    _others_count: dict[tuple[str, str], int] = field(default_factory=dict)
    _late: int = 0
    _letters: int = 0

    def __post_init__(self) -> None:
        self._counts = [0] * len(self.shape.expect)
        self._of: dict[tuple[str, str], list[int]] = {}
        for number, each in enumerate(self.shape.expect):
            self._of.setdefault((each.kind, each.rule), []).append(number)

    def add(self, found: ReplayedBatch) -> None:
        """Count the results of a batch."""
        for match in found.objects.matches:
            self._count("match", match, match.time)
        for timeout in found.objects.timeouts:
            self._count("timeout", timeout, timeout.deadline)
        self._late += sum(found.results.late_counts.values())
        self._letters += len(found.letters)

    def _count(self, kind: str, result: Match | Timeout, time: int) -> None:
        selected = False
        for number in self._of.get((kind, result.rule_id), ()):
            if self.shape.expect[number].selects(result, time):
                self._counts[number] += 1
                selected = True
        if selected:
            return
        at = (kind, result.rule_id)
        self._others_count[at] = self._others_count.get(at, 0) + 1
        examples = self._others.setdefault(at, [])
        if len(examples) < _MOST_EXAMPLES:
            examples.append(f"{result.match_id} of key {result.key} at {time_text(time)}")

    def verdicts(self) -> Iterator[ExpectationVerdict]:
        """Each expectation, and what none of them expects."""
        for each, count in zip(self.shape.expect, self._counts, strict=True):
            wrong = None if count in each.bounds else f"found {count}"
            yield ExpectationVerdict(each.title, wrong)
        for what, bounds, count in (
            ("late events", self.shape.late, self._late),
            ("dead letters", self.shape.dead_letters, self._letters),
        ):
            if bounds is not None:
                wrong = None if count in bounds else f"found {count}"
                yield ExpectationVerdict(f"{bounds} {what}", wrong)
        if self.shape.unexpected == "ignore":
            return
        for (kind, rule), examples in sorted(self._others.items()):
            count = self._others_count[kind, rule]
            more = f" and {count - len(examples)} more" if count > len(examples) else ""
            what = f"no {kind} of {rule} that no entry expects"
            wrong = f"found {count}: {'; '.join(examples)}{more}"
            yield ExpectationVerdict(what, wrong, warning=self.shape.unexpected == "warn")
