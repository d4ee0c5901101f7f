"""Open partial matches as tokens of a drawing, with numbers that they keep from reading to
reading."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

from spark_cep.compiler.explain.drawing import Drawing
from spark_cep.compiler.plan import StateKind
from spark_cep.model import Coordinates
from spark_cep.pipeline.state.stored_group import HeldPartial
from spark_cep.play.view import DrawnPartial, Fate


@dataclass(frozen=True, slots=True)
class DrawnRule:
    """A rule as it is drawn. ``steps``: the names of its steps by number, as far as these are
    known; ``text``: its canonical text."""

    id: str
    version: int
    drawing: Drawing
    steps: Sequence[str]
    text: str


@dataclass(frozen=True, slots=True)
class OpenToken:
    """An open partial match: its key, the time of its first event and its deadline in milliseconds,
    and its token."""

    key: str | None
    began: int
    deadline: int
    token: DrawnPartial


_Events = tuple[tuple[int, Coordinates], ...]


class _KnownPartial(NamedTuple):
    """A partial match of the reading before."""

    events: _Events
    places: tuple[int, ...]
    number: int


#: Of one rule: by key and first event.
_Readings = Mapping[tuple[str | None, Coordinates], Sequence[_KnownPartial]]


class Numbering:
    """Numbers partial matches. One that has taken more events since the last reading keeps its
    number, and one that has parted from it gets another."""

    def __init__(self) -> None:
        self._known: dict[str, _Readings] = {}

    def tokens(
        self,
        partials: Sequence[tuple[str | None, HeldPartial]],
        drawn: Mapping[tuple[str, int], DrawnRule],
    ) -> dict[tuple[str, int], tuple[OpenToken, ...]]:
        """The tokens of a reading by rule and version."""
        by_rule: dict[str, list[tuple[str | None, HeldPartial]]] = defaultdict(list)
        for key, partial in partials:
            by_rule[partial.rule.fingerprint].append((key, partial))
        self._known = {name: each for name, each in self._known.items() if name in by_rule}
        found = {}
        for fingerprint, several in by_rule.items():
            rule = several[0][1].rule.id, several[0][1].rule.version
            found[rule] = tuple(self._numbered(fingerprint, several, drawn.get(rule)))
        return found

    def _numbered(
        self,
        fingerprint: str,
        several: Sequence[tuple[str | None, HeldPartial]],
        drawn: DrawnRule | None,
    ) -> Iterator[OpenToken]:
        before = self._known.get(fingerprint, {})
        used: set[int] = set()
        now: dict[tuple[str | None, Coordinates], list[_KnownPartial]] = defaultdict(list)
        taken = {each.number for known in before.values() for each in known}
        free = (number for number in count(1) if number not in taken)
        # Those that have taken nothing are found first: what has parted from them is new.
        for key, each in sorted(several, key=lambda one: len(one[1].events)):
            events, places = tuple(each.events), tuple(each.places)
            same = _longest(before.get((key, events[0][1]), ()), events)
            number = same.number if same is not None and same.number not in used else next(free)
            parent = None if same is None or same.number == number else same.number
            used.add(number)
            moved = same is None or (same.events, same.places) != (events, places)
            now[key, events[0][1]].append(_KnownPartial(events, places, number))
            token = DrawnPartial(
                number, places, _fate(places, drawn), moved, parent, _held(events, drawn)
            )
            yield OpenToken(key, each.began, each.deadline, token)
        self._known[fingerprint] = now


def _longest(known: Sequence[_KnownPartial], events: _Events) -> _KnownPartial | None:
    """The one that had taken the most of these events, and no others."""
    begins = [each for each in known if events[: len(each.events)] == each.events]
    return max(begins, key=lambda each: len(each.events), default=None)


def _held(events: _Events, drawn: DrawnRule | None) -> str:
    steps = () if drawn is None else drawn.steps
    names = (steps[step] if step < len(steps) else f"step {step}" for step, _ in events)
    counts = Counter(names)
    return ", ".join(name if n == 1 else f"{name} ×{n}" for name, n in counts.items())


def _fate(places: Sequence[int], drawn: DrawnRule | None) -> Fate:
    kinds = {} if drawn is None else {each.number: each.kind for each in drawn.drawing.states}
    back = all(kinds.get(place) is StateKind.FINAL for place in places)
    return Fate.HELD_BACK if back else Fate.ALIVE
