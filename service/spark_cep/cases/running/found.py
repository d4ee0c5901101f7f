"""The results of a case, as keys and values that its expectations name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import yaml

from spark_cep.cases.document.values import plain, relative
from spark_cep.cases.running.case_run import CaseRun
from spark_cep.testkit.results import (
    FailedEvent,
    FoundMatch,
    FoundRow,
    FoundTimeout,
    LateArrival,
    OpenMatch,
    SentEvent,
)

KINDS: Final = ("matches", "rows", "timeouts", "late", "dead_letters", "partial_matches")
"""The kinds of results, in the order in which they are shown."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
#: The keys that tell one result from another.
_TELLING: Final = ("rule", "key", "event")
_TIMES: Final = ("at", "start", "until")


@dataclass(frozen=True)
class FoundResult:
    """A result: values by key, those of measures, columns and steps behind a dot. Times are
    microseconds since 1970, events their numbers from 0."""

    run: CaseRun
    values: Mapping[str, Any]

    def has(self, name: str) -> bool:
        """Return whether there is such a key."""
        return name in self.values

    def value(self, name: str) -> Any:
        """The value of a key; a step that is not there has no events."""
        if name not in self.values and name.startswith("steps."):
            # Variables of SQL, whose names may be written otherwise.
            same = (each for each in self.values if each.casefold() == name.casefold())
            return self.values.get(next(same, ""), [])
        return self.values.get(name)

    @property
    def telling(self) -> list[str]:
        """The keys that tell which result it is."""
        return [name for name in _TELLING if name in self.values]

    @property
    def all_names(self) -> list[str]:
        """All keys, but those that follow from others."""
        return [
            name
            for name, value in self.values.items()
            if name not in ("version", "start", "row") and value != []
        ]

    def written(self, name: str) -> Any:
        """The value of a key as a case writes it."""
        value = self.value(name)
        if value is None:
            return None
        if name in _TIMES:
            return relative(value, self.run.start)
        if name == "event" or name.startswith("steps."):
            names = [self.run.case.names.written(number) for number in value]
            return names[0] if len(names) == 1 else names
        if isinstance(value, datetime) and value.tzinfo is not None:
            return relative(micros_of(value), self.run.start)
        return plain(value)

    def shown(self, name: str) -> str | None:
        """The value of a key as text; ``None`` where there is none."""
        if name not in self.values and not name.startswith("steps."):
            return None  # no such measure or column, for example
        value = self.written(name)
        if name == "event" or name.startswith("steps."):
            return self.events_shown(value if isinstance(value, list) else [value])
        return self.text(value)

    @staticmethod
    def text(value: Any) -> str:
        """A value as YAML writes it in a line."""
        text = yaml.safe_dump(
            plain(value), default_flow_style=True, allow_unicode=True, width=1_000, sort_keys=False
        )
        return text.removesuffix("\n").removesuffix("\n...")

    @staticmethod
    def events_shown(names: Sequence[str | int]) -> str:
        """Events by name, or by number."""
        return ", ".join(str(name) for name in names) or "none"


def found_results(run: CaseRun) -> Mapping[str, list[FoundResult]]:
    """The results of each kind, in the order in which they were found."""
    kit = run.kit
    return {
        "matches": [FoundResult(run, dict(_match(each))) for each in kit.matches],
        "rows": [FoundResult(run, dict(_row(each))) for each in kit.rows],
        "timeouts": [FoundResult(run, dict(_timeout(each))) for each in kit.timeouts],
        "late": [FoundResult(run, dict(_late(each))) for each in kit.late],
        "dead_letters": [FoundResult(run, dict(_dead_letter(each))) for each in kit.dead_letters],
        "partial_matches": [FoundResult(run, dict(_open(each))) for each in kit.partial_matches],
    }


_Taken = FoundMatch | FoundTimeout | OpenMatch


def _taken(each: _Taken) -> Iterator[tuple[str, Any]]:
    yield "rule", each.rule_id
    yield "version", each.rule_version
    yield "key", each.key
    for step in each.step_names:
        yield f"steps.{step}", _numbers(each.steps.get(step, ()))


def _times(at: datetime, start: datetime) -> Iterator[tuple[str, Any]]:
    yield "at", micros_of(at)
    yield "start", micros_of(start)


def _match(each: FoundMatch) -> Iterator[tuple[str, Any]]:
    yield from _taken(each)
    yield "at", micros_of(each.time)
    if each.steps:  # an empty match of a row pattern has none
        yield "start", micros_of(each.start)
    yield from _behind("measures", each.measures)


def _timeout(each: FoundTimeout) -> Iterator[tuple[str, Any]]:
    yield from _taken(each)
    yield from _times(each.deadline, each.start)
    yield "already_matched", each.already_matched
    yield from _behind("measures", each.measures)


def _row(each: FoundRow) -> Iterator[tuple[str, Any]]:
    yield "rule", each.rule_id
    yield "key", each.key
    yield "row", each.row
    yield "variable", each.variable
    yield "event", _numbers([each.event])
    yield from _behind("columns", each.columns)


def _late(each: LateArrival) -> Iterator[tuple[str, Any]]:
    yield "event", _numbers([each.event])


def _dead_letter(each: FailedEvent) -> Iterator[tuple[str, Any]]:
    yield "event", _numbers([each.event])
    yield "reason", each.reason
    yield "detail", each.detail
    if each.rule_id is not None:
        yield "rule", each.rule_id
    if each.step is not None:
        yield "step", each.step


def _open(each: OpenMatch) -> Iterator[tuple[str, Any]]:
    yield from _taken(each)
    if each.deadline is not None:
        yield "until", micros_of(each.deadline)
    yield "waits_for", list(each.waits_for)


def _behind(name: str, values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for inner, value in values.items():
        yield f"{name}.{inner}", value


def _numbers(events: Sequence[SentEvent]) -> list[int]:
    return [event.number for event in events]


def micros_of(moment: datetime) -> int:
    """The microseconds since 1970."""
    return (moment - _EPOCH) // _MICROSECOND
