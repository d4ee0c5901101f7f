"""Counts of results that are columns: by rule, day, minute and key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from spark_cep.columns.compilation import I64
from spark_cep.columns.vectors import Bytes
from spark_cep.matcher.findings.result_rows import ResultRows
from spark_cep.matcher.findings.results import ResultKind, Results

MINUTE, DAY = 60_000, 86_400_000


@dataclass
class RuleTally:
    """The results of one rule in a batch; days and minutes of event time as numbers since 1970.
    ``keys``: matches by key."""

    matches: int = 0
    timeouts: int = 0
    rows: int = 0
    days: Counter[int] = field(default_factory=Counter)
    timeout_days: Counter[int] = field(default_factory=Counter)
    minutes: Counter[int] = field(default_factory=Counter)
    keys: Counter[str | None] = field(default_factory=Counter)


def tallies_of(results: Iterable[Results | ResultRows]) -> dict[str, RuleTally]:
    """The counts of results, by the ids of their rules."""
    found: dict[str, RuleTally] = {}
    for each in results:
        if isinstance(each, ResultRows):
            found.setdefault(each.plan.rule.id, RuleTally()).rows += len(each)
            continue
        for number in np.unique(each.rule).tolist():
            mine = found.setdefault(each.plans[number].rule.id, RuleTally())
            rows = np.flatnonzero(each.rule == number)
            times = each.time[rows]
            if each.kind is ResultKind.TIMEOUT:
                mine.timeouts += len(rows)
                mine.timeout_days.update(_counted(times // DAY))
            else:
                mine.matches += len(rows)
                mine.days.update(_counted(times // DAY))
                mine.minutes.update(_counted(times // MINUTE))
                _count_keys(mine.keys, each.keys, each.key[rows])
    return found


def _counted(numbers: I64) -> dict[int, int]:
    values, counts = np.unique(numbers, return_counts=True)
    return dict(zip(values.tolist(), counts.tolist(), strict=True))


def _count_keys(counts: Counter[str | None], keys: Bytes, numbers: I64) -> None:
    used, times = np.unique(numbers, return_counts=True)
    for number, count in zip(used.tolist(), times.tolist(), strict=True):
        counts[keys.text(number)] += count
