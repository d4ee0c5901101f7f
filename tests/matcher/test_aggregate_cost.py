"""Aggregates in conditions are kept from event to event: what an event costs does not follow from
how many are taken. Computed anew for each event they would cost the square.

Of conditions that Python computes, the values that their aggregates read are counted. Compiled
loops count nothing that a test could read: their times are those of `python -m bench cost`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import RuleSetPlan, compile_rules
from spark_cep.matcher.batch.events import Names
from spark_cep.matcher.batch.input_batch import InputBatch
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.matcher.keys import KeysMatcher, KeysState
from spark_cep.matcher.row_pattern.python_calls.key_rows import KeyRows
from spark_cep.matcher.steps import calls
from spark_cep.model import Coordinates
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pattern.types import BIGINT, STRING, RecordType
from tests.reference.local import EventReader, Record
from tests.sql_rules import sql_rule

EVENT = RecordType({"key": STRING, "ts": BIGINT, "name": STRING, "price": BIGINT})
TYPES = RecordTypes((("t", "Event", EVENT),))

STEPS = """\
id: r
key: key
within: 1 day
limits: {{events: 1000000, work: 1000000000}}
pattern:
  - {{step: s, where: "name = 's'"}}
  - {{step: a, after: next, where: "name = 'a' AND {0}", times: 1+,
     greedy: true, loop: consecutive}}
  - {{step: z, after: next, where: "name = 'z'"}}
"""
IN_SQL = (
    "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY key ORDER BY ts MEASURES COUNT(a.price) AS n"
    " PATTERN (s a+ z) WITHIN INTERVAL '1' DAY DEFINE s AS name = 's', a AS name = 'a' AND {0},"
    " z AS name = 'z')"
)
CALLED = ["COALESCE(MAX(CONCAT(a.name, 'x')), 'ax') = 'ax'"]


def planned(engine: str, condition: str) -> RuleSetPlan:
    """A rule of one engine, whose loop has the condition."""
    if engine == "sql":
        # Of the row that is asked about, too.
        return compile_rules([sql_rule(IN_SQL.format(condition), EVENT)], TYPES)
    loaded = load_rules(STEPS.format(condition), "r.yaml")
    return compile_rules((each.rule for each in loaded), TYPES)


class Fed:
    """A rule, and batches of one key whose events its loop takes all."""

    def __init__(self, engine: str, condition: str) -> None:
        (self._part,) = planned(engine, condition).partitionings
        self._matcher = KeysMatcher(self._part, TYPES)
        reader = EventReader(self._part, TYPES)
        self._made = {
            (name, price): reader.event(
                Record(
                    Coordinates("t", 0, 0),
                    0,
                    {"key": "k", "ts": 0, "name": name, "price": price},
                    "t",
                ),
                Outputs(),
            )
            for name in "sa"
            for price in range(7)
        }

    def take(self, count: int) -> None:
        """A batch with so many events."""
        known = Names()
        events = [
            self._made["a" if n else "s", n % 7]._replace(time=n, at=Coordinates("t", 0, n))
            for n in range(count + 1)
        ]
        batch = InputBatch.of({"k": events}, known, self._matcher.slots)
        state = KeysState()
        for outputs in self._matcher.advance(state, batch, count, known):
            assert not outputs.dead_letters
        assert len(state.events) == count + 1


def counted(real: Callable[..., Any], count: list[int]) -> Callable[..., Any]:
    """The function, whose calls are counted."""

    def run(*given: Any, **named: Any) -> Any:
        count[0] += 1
        return real(*given, **named)

    return run


@pytest.mark.parametrize("condition", CALLED)
def test_values_that_steps_read(condition: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each value once or twice, however many events there are."""
    read, begin = [0], calls._Walk.__init__

    def begun(walk: Any, *given: Any) -> None:
        begin(walk, *given)
        walk.read = counted(walk.read, read)

    monkeypatch.setattr(calls._Walk, "__init__", begun)
    fed = Fed("steps", condition)
    reads = []
    for count in (100, 400):
        read[0] = 0
        fed.take(count)
        reads.append(read[0])
    assert 90 <= reads[0] <= 200
    assert reads[1] <= 4 * reads[0] + 8


@pytest.mark.parametrize("condition", CALLED)
def test_values_that_sql_reads(condition: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows that are read grow with their number, not with its square."""
    read = [0]
    monkeypatch.setattr(KeyRows, "row", counted(KeyRows.row, read))
    fed = Fed("sql", condition)
    reads = []
    for count in (100, 400):
        read[0] = 0
        fed.take(count)
        reads.append(read[0])
    assert reads[0] >= 100
    assert reads[1] <= 5 * reads[0]
