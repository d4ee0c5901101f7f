"""The report of a replay: how much each rule found, when, for which keys, and at which cost.

It grows with rules, days and minutes with results, not with events: of keys, those with most
matches are kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import nlargest
from typing import Any

from spark_cep.backtest.replay import NOT_SIMULATED, OpenMatches, ReplayedBatch, begun
from spark_cep.backtest.tallies import DAY, MINUTE
from spark_cep.event_times import time_text
from spark_cep.matcher.findings.live import PartialMatch
from spark_cep.pipeline.match.watermark import BEGINNING, END
from spark_cep.pipeline.wire.reports import Count
from spark_cep.rules.rule_set import RuleSet

_HOUR = 3_600_000
#: Widths of the bars of a histogram, and how many there are at most.
_WIDTHS = (MINUTE, 10 * MINUTE, _HOUR, 6 * _HOUR, DAY, 7 * DAY, 30 * DAY, 365 * DAY)
_MOST_BARS = 30
_MOST_KEYS = 50_000
_TOP = 10


@dataclass
class TopKeys:
    """The keys with most matches. ``exact``: no key had to be forgotten."""

    counts: Counter[str | None] = field(default_factory=Counter)
    exact: bool = True

    def add(self, counts: Mapping[str | None, int]) -> None:
        """Take in matches by key."""
        self.counts.update(counts)
        if len(self.counts) > 2 * _MOST_KEYS:
            self.counts = Counter(dict(self.counts.most_common(_MOST_KEYS)))
            self.exact = False

    @property
    def top(self) -> list[tuple[str | None, int]]:
        """The first of them."""
        return nlargest(_TOP, self.counts.items(), key=lambda each: (each[1], str(each[0])))


@dataclass
class RuleBacktest:
    """The report of one version of a rule; ``by_day``: matches and timeouts by day (UTC)."""

    id: str
    version: int
    matches: int = 0
    timeouts: int = 0
    rows: int = 0
    dead_letters: int = 0
    events: int = 0
    started: int = 0
    open: int = 0
    nanoseconds: int = 0
    by_day: Counter[str] = field(default_factory=Counter)
    timeouts_by_day: Counter[str] = field(default_factory=Counter)
    keys: TopKeys = field(default_factory=TopKeys)

    def as_json(self) -> dict[str, Any]:
        """The report as JSON values."""
        days = sorted({*self.by_day, *self.timeouts_by_day})
        return {
            "id": self.id,
            "version": self.version,
            "matches": self.matches,
            "timeouts": self.timeouts,
            "rows": self.rows,
            "dead_letters": self.dead_letters,
            "events": self.events,
            "partial_matches": {"started": self.started, "open": self.open},
            "seconds": round(self.nanoseconds / 1e9, 6),
            "by_day": {
                day: {"matches": self.by_day[day], "timeouts": self.timeouts_by_day[day]}
                for day in days
            },
            "top_keys": [{"key": key, "matches": count} for key, count in self.keys.top],
            "top_keys_exact": self.keys.exact,
        }


@dataclass
class BacktestReport:
    """The report of a whole run. ``longest``: the partial matches that have been open longest at
    the end; ``minutes``: matches by minute of event time."""

    rules: dict[str, RuleBacktest]
    records: int = 0
    late: int = 0
    watermark: int = BEGINNING
    seconds: float = 0.0
    dead_letters: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    minutes: Counter[int] = field(default_factory=Counter)
    longest: list[PartialMatch] = field(default_factory=list)

    @classmethod
    def of(cls, rules: RuleSet) -> BacktestReport:
        """The report of a run that begins."""
        running = (one.rule for one in rules.running)
        return cls({rule.id: RuleBacktest(rule.id, rule.version) for rule in running})

    def add(self, found: ReplayedBatch) -> None:
        """Count the results of a batch."""
        results = found.results
        self.records += found.records
        self.late += sum(results.late_counts.values())
        self.watermark = max(self.watermark, results.watermark)
        for rule, tally in found.tallies.items():
            mine = self.rules[rule]
            mine.matches += tally.matches
            mine.timeouts += tally.timeouts
            mine.rows += tally.rows
            mine.by_day.update({_day(day): count for day, count in tally.days.items()})
            mine.timeouts_by_day.update({_day(day): n for day, n in tally.timeout_days.items()})
            mine.keys.add(tally.keys)
            self.minutes.update(tally.minutes)
        for letter in found.letters:
            self.dead_letters[letter.reason] += 1
            at = letter.at.text
            self.examples.setdefault(letter.reason, f"{at}: {letter.detail}")
            if letter.rule_id is not None and letter.rule_id in self.rules:
                self.rules[letter.rule_id].dead_letters += 1
        for (rule, what), count in results.outputs.counts.items():
            if what == Count.EVENTS:
                self.rules[rule].events += count
            elif what == Count.STARTED:
                self.rules[rule].started += count
        for (what, *labels), count in results.counts.items():
            if what == Count.PROCESSING_NS:
                self.rules[labels[0]].nanoseconds += count

    def end(self, open_matches: OpenMatches, seconds: float) -> None:
        """Take in what is open at the end, and how long all took."""
        self.seconds = seconds
        self.longest = open_matches.longest
        for rule, count in open_matches.counts.items():
            self.rules[rule].open = count

    @property
    def matches(self) -> int:
        """Matches of all rules."""
        return sum(each.matches for each in self.rules.values())

    @property
    def histogram(self) -> list[tuple[int, int, int]]:
        """Begin and width in ms of each bar, and the matches in it; bars of none included."""
        if not self.minutes:
            return []
        first, last = min(self.minutes) * MINUTE, max(self.minutes) * MINUTE
        width = next((w for w in _WIDTHS if last // w - first // w < _MOST_BARS), _WIDTHS[-1])
        bars = Counter[int]()
        for minute, count in self.minutes.items():
            bars[minute * MINUTE // width] += count
        return [
            (number * width, width, bars[number])
            for number in range(first // width, last // width + 1)
        ]

    def as_json(self) -> dict[str, Any]:
        """The report as JSON values."""
        ended = BEGINNING < self.watermark < END
        return {
            "records": self.records,
            "seconds": round(self.seconds, 3),
            "watermark": time_text(self.watermark) if ended else None,
            "late_events": self.late,
            "dead_letters": dict(self.dead_letters),
            "rules": [each.as_json() for each in self.rules.values()],
            "histogram": [
                {"from": time_text(begin), "to": time_text(begin + width), "matches": count}
                for begin, width, count in self.histogram
            ],
            "longest_partial_matches": [partial_as_json(each) for each in self.longest],
            "not_simulated": NOT_SIMULATED,
        }


def partial_as_json(partial: PartialMatch) -> Mapping[str, Any]:
    """A partial match as JSON values."""
    deadline = partial.deadline
    return {
        "rule_id": partial.rule_id,
        "key": partial.key,
        "start": time_text(begun(partial)),
        "deadline": None if deadline is None or deadline >= END else time_text(deadline),
        "events": {name: len(events) for name, events in partial.steps.items()},
        "waits_for": list(partial.waits_for),
    }


def _day(day: int) -> str:
    return time_text(day * DAY)[:10]
