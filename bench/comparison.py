"""Runs of several contenders in turn, and what follows from their medians."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.outputs import Found, check_once, check_same


@dataclass
class Run:
    """One timed run: what the side answered, and what it wrote, where that is compared."""

    events: int
    seconds: float
    answer: dict[str, Any] = field(repr=False)
    found: Found | None = field(default=None, repr=False)

    @property
    def rate(self) -> float:
        """Events per second."""
        return self.events / self.seconds


@dataclass(frozen=True)
class Contender:
    """Something to run. ``warm_up`` is a short run that is not timed, right before each other one:
    while others run, caches grow cold and idle Python workers end."""

    name: str
    run: Callable[[], Run]
    warm_up: Callable[[], object]
    once: bool = True
    """Whether writing something twice is a fault (a peer may)."""


def in_turn(
    contenders: Sequence[Contender], runs: int, say: Callable[[str], None]
) -> dict[str, list[Run]]:
    """All contenders once, then again, ``runs`` times, after a first round that does not count: a
    JVM compiles for minutes. DisagreementError when outputs differ, in the first round, too."""
    results: dict[str, list[Run]] = {contender.name: [] for contender in contenders}
    reference: tuple[str, Found] | None = None
    for number in range(runs + 1):
        for contender in contenders:
            contender.warm_up()
            run = contender.run()
            which = f"run {number}" if number else "not counted"
            say(f"{contender.name}, {which}: {run.seconds:.2f} s, {run.rate:,.0f} events/s")
            if run.found is not None:
                if contender.once:
                    check_once(contender.name, run.found)
                if reference is None:
                    reference = (contender.name, run.found)
                check_same(*reference, contender.name, run.found)
                run.answer["repeated_timeouts"] = run.found.repeated_timeouts
                # One copy is enough.
                run.found = reference[1]
            if number:
                results[contender.name].append(run)
    return results


def median_rate(runs: Sequence[Run]) -> float:
    """Events per second of the median run."""
    return statistics.median(run.rate for run in runs)


@dataclass(frozen=True)
class Ratio:
    """Ours over another's, of medians; ``low`` and ``high`` are of the runs made in turn."""

    name: str
    other: str
    events: int
    ours: float
    theirs: float
    low: float
    high: float
    aim: float | None = None

    @property
    def ratio(self) -> float:
        """The figure."""
        return self.ours / self.theirs

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "name": self.name,
            "other": self.other,
            "events": self.events,
            "ours": round(self.ours),
            "theirs": round(self.theirs),
            "ratio": round(self.ratio, 3),
            "low": round(self.low, 3),
            "high": round(self.high, 3),
            "aim": self.aim,
        }


def ratio(
    name: str,
    results: Mapping[str, Sequence[Run]],
    ours: str,
    theirs: str,
    aim: float | None = None,
) -> Ratio:
    """``ours`` over ``theirs``."""
    pairs = [
        one.rate / other.rate for one, other in zip(results[ours], results[theirs], strict=True)
    ]
    return Ratio(
        name,
        theirs,
        results[ours][0].events,
        median_rate(results[ours]),
        median_rate(results[theirs]),
        min(pairs),
        max(pairs),
        aim,
    )


def profile(runs: Sequence[Run]) -> dict[str, float]:
    """Seconds by stage, medians over the runs, the longest first. Those of the service are summed
    over tasks; those of Spark passed on the clock."""
    stages: dict[str, list[float]] = {}
    for run in runs:
        for stage, seconds in run.answer["stages"].items():
            stages.setdefault(stage, []).append(seconds)
    found = {
        stage: round(statistics.median([*each, *[0.0] * (len(runs) - len(each))]), 3)
        for stage, each in stages.items()
    }
    return dict(sorted(found.items(), key=lambda one: -one[1]))
