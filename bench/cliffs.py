"""Events per second by kind of condition, each in turn with the plainest rule of its shape.

A kind that is much slower than the plain rule is a cliff: who writes such a rule falls off it. All
kinds run over the same topics, in one session; the plain rule runs right before each of them.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from bench.cliff_events import Columns, all_types, cliff_logins, cliff_payments, of_two_types
from bench.cliff_kinds import KINDS, PLAIN, Kind, Shape
from bench.comparison import Contender, Run, median_rate
from bench.contenders import Course, RefusedError, job
from bench.feed import Stream
from bench.outputs import DisagreementError, check_same, line_of
from bench.side import Side
from bench.testbed import TestBed, Topic

_WARM_UP_EVENTS = 20_000
#: Kinds of one process: each query of it keeps some thread-local keys, of which there are 1,024.
_KINDS_TOGETHER = 40
#: Runs of the plain rule before anything is timed: a JVM compiles for minutes.
_FIRST_RUNS = 3
#: Further pairs of a kind below its aim: a run that is disturbed can be several times slower.
_MORE_RUNS = 4


class Workload(StrEnum):
    """What kinds are measured on."""

    LOGINS = "log-ins"
    PAYMENTS = "payments"


_STREAMS: dict[Workload, Callable[[int, Columns], Stream]] = {
    Workload.LOGINS: cliff_logins,
    Workload.PAYMENTS: cliff_payments,
}
_KEYS = {Workload.LOGINS: "user_id", Workload.PAYMENTS: "card.id"}


def chosen(parts: Sequence[str]) -> list[Kind]:
    """The kinds whose names contain one of ``parts``, whatever the case.

    Raises:
        ValueError: A part is in no name.
    """
    found: dict[str, Kind] = {}
    for part in parts:
        kinds = {name: kind for name, kind in KINDS.items() if part.lower() in name.lower()}
        if not kinds:
            raise ValueError(f"no kind has {part!r} in its name; there are: {'; '.join(KINDS)}")
        found |= kinds
    return [kind for name, kind in KINDS.items() if name in found]


def cliffs(
    bed: TestBed,
    *,
    events: int,
    runs: int,
    kinds: Sequence[Kind],
    workloads: Sequence[Workload],
) -> dict[str, Any]:
    """A row for each kind and workload; ``runs`` pairs of runs for each."""
    rows = []
    for workload in workloads:
        field = _Field(bed, workload, events, union=any(kind.types for kind in kinds))
        for first in range(0, len(kinds), _KINDS_TOGETHER):
            with bed.our_side() as side:
                field.begin(side)
                rows += [field.row(kind, runs) for kind in kinds[first : first + _KINDS_TOGETHER]]
    return {"events": events, "cliffs": rows}


def _ratio(pairs: Sequence[tuple[Run, Run]]) -> float:
    return statistics.median(run.rate / plain.rate for plain, run in pairs)


class _Field:
    """A workload: its topics, and its plain rules, warmed up when they are first needed."""

    _side: Side

    def __init__(self, bed: TestBed, workload: Workload, events: int, *, union: bool) -> None:
        self._bed, self._workload = bed, workload
        make, columns = _STREAMS[workload], all_types()
        self._topics = self._filled("one-type", lambda count: make(count, columns), events)
        if union:
            self._union = self._filled("two-types", lambda count: of_two_types(make, count), events)
        self._plain: dict[Shape, Contender] = {}

    def begin(self, side: Side) -> None:
        """Go on with this process."""
        self._side = side
        self._plain.clear()

    def row(self, kind: Kind, runs: int) -> dict[str, Any]:
        """Measure one kind."""
        row: dict[str, Any] = {"kind": kind.name, "workload": self._workload, "aim": kind.aim}
        plain, measured = self._plain_of(kind.shape), self._contender(kind)
        try:
            measured.warm_up()
        except RefusedError as error:
            self._bed.say(f"{self._workload}, {kind.name}: refused")
            return row | {"refused": str(error)}
        pairs = [(plain.run(), measured.run()) for _ in range(runs)]
        if _ratio(pairs) < kind.aim:
            pairs += [(plain.run(), measured.run()) for _ in range(_MORE_RUNS)]
        return row | self._figures(kind, pairs)

    def _figures(self, kind: Kind, pairs: Sequence[tuple[Run, Run]]) -> dict[str, Any]:
        ratios = [run.rate / plain.rate for plain, run in pairs]
        ratio = _ratio(pairs)
        figures = {
            "rate": round(median_rate([run for _, run in pairs])),
            "plain": round(median_rate([plain for plain, _ in pairs])),
            "ratio": round(ratio, 3),
            "low": round(min(ratios), 3),
            "high": round(max(ratios), 3),
            "matches": pairs[0][1].answer["matches"],
            "timeouts": pairs[0][1].answer["timeouts"],
        }
        self._bed.say(
            f"{self._workload}, {kind.name}: {figures['rate']:,} events/s, {ratio:.2f} of"
            f" {figures['plain']:,}"
        )
        try:
            for plain, run in pairs:
                assert plain.found is not None
                assert run.found is not None
                check_same("the plain rule", plain.found, kind.name, run.found)
        except DisagreementError as error:
            self._bed.say(f"{self._workload}, {kind.name}: {error}")
            figures["differs"] = str(error)
        return figures

    def _plain_of(self, shape: Shape) -> Contender:
        if shape not in self._plain:
            contender = self._contender(PLAIN[shape])
            contender.warm_up()
            for _ in range(1 if self._plain else _FIRST_RUNS):
                contender.run()
            self._plain[shape] = contender
        return self._plain[shape]

    def _contender(self, kind: Kind) -> Contender:
        topic, warm_up = self._topics if kind.types is None else self._union
        folder = self._bed.folder / "rules" / self._bed.next_run(f"{self._workload}-{kind.name}")
        rules = write_kind(folder, kind, _KEYS[self._workload])
        course = Course(topic, warm_up, "", rules, lines=_line_without_key)
        return job(self._bed, self._side, course, kind.name)

    def _filled(
        self, name: str, stream: Callable[[int], Stream], events: int
    ) -> tuple[Topic, Topic]:
        name = f"{self._workload}-{name}"
        return (
            self._bed.filled(name, stream(events), events),
            self._bed.filled(f"{name}-warm-up", stream(_WARM_UP_EVENTS), _WARM_UP_EVENTS),
        )


def _line_without_key(kind: str, record: dict[str, Any]) -> str:
    """Rules that tell keys otherwise find the same all the same."""
    return line_of(kind, {**record, "key": ""})


def write_kind(folder: Path, kind: Kind, key: str) -> Path:
    """A folder with the rules of ``kind``, for events with that key."""
    folder.mkdir(parents=True)
    for number, document in enumerate(kind.documents(key)):
        (folder / f"rule-{number}.json").write_text(document, "utf-8")
    return folder
