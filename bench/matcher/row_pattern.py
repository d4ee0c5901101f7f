"""``python -m bench.matcher.row_pattern``: MATCH_RECOGNIZE and rules of steps that say the same.

Two sides over the same events, in turn, on one core: the matcher of row patterns, and the kernel
with the rule in YAML. Rows come as columns, with the bits of what reads a row alone computed
before, as in the job; what is found is taken out as columns, of row patterns with their measures.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import process_time
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from bench.matcher.engines import Counts, Kernel
from bench.matcher.measurement import DisagreementError, stay_on_one_core
from bench.matcher.scenarios import Scenario
from bench.matcher.stream import Stream, generate
from spark_cep.columns.compilation import I64
from spark_cep.columns.vectors import Numbers, Vector, nulls_of
from spark_cep.compiler.row_pattern import RowPatternPlan, plan_query
from spark_cep.matcher.batch.events import EventTable, Names, together
from spark_cep.matcher.row_pattern.instances import ROW
from spark_cep.matcher.row_pattern.loops import tables
from spark_cep.matcher.row_pattern.matcher import CompiledRowPattern, RowPatternLoopRun
from spark_cep.matcher.row_pattern.states import RowPatternStates
from spark_cep.pattern.expressions import bind
from spark_cep.pattern.sql import load_query
from spark_cep.pattern.types import DOUBLE, STRING, RecordType

_EVENT = RecordType({"kind": STRING, "amount": DOUBLE})


@dataclass(frozen=True)
class Pair:
    """A clause, and the rule of steps that says the same."""

    clause: str
    steps: Scenario

    @property
    def plan(self) -> RowPatternPlan:
        """The clause, compiled."""
        text = f"SELECT * FROM events MATCH_RECOGNIZE ({self.clause})"  # noqa: S608  our own
        return plan_query(load_query(text, self.steps.name, _EVENT))


PAIRS = (
    Pair(
        "MEASURES FIRST(fail.amount) AS first_failure, COUNT(fail.*) AS attempts"
        " PATTERN (fail{3,} ok) WITHIN INTERVAL '1' MINUTE"
        " DEFINE fail AS kind = 'a', ok AS kind = 'b'",
        Scenario(
            "logins",
            "log-in failures: fail{3,} ok",
            """\
pattern:
  - {step: fail, where: kind = 'a', times: 3+, loop: consecutive, greedy: true}
  - {step: ok, after: next, where: kind = 'b'}
within: 1 minute
after_match: skip_past_last_event
""",
            {"a": 0.7, "b": 0.3},
        ),
    ),
    Pair(
        "MEASURES S.amount AS high, LAST(D.amount) AS low, U.amount AS up"
        " PATTERN (S D+ U) WITHIN INTERVAL '1' MINUTE"
        " DEFINE S AS kind = 'a', D AS kind = 'a' AND amount < PREV(amount),"
        " U AS kind = 'a' AND amount > PREV(amount)",
        Scenario(
            "v-shape",
            "V-shape: S D+ U",
            """\
pattern:
  - {step: s, where: kind = 'a'}
  - step: d
    after: next
    where: kind = 'a' AND amount < COALESCE(LAST(d.amount), LAST(s.amount))
    times: 1+
    loop: consecutive
  - {step: u, after: next, where: kind = 'a' AND amount > LAST(d.amount)}
within: 1 minute
after_match: skip_past_last_event
""",
            {"a": 1.0},
        ),
    ),
    Pair(
        "MEASURES H.amount AS high, L.amount AS low"
        " PATTERN (H L) WITHIN INTERVAL '1' MINUTE"
        " DEFINE H AS kind = 'a', L AS kind = 'a' AND amount < 0.5 * H.amount",
        Scenario(
            "drop",
            "price drop: H L",
            """\
pattern:
  - {step: h, where: kind = 'a'}
  - {step: l, after: next, where: kind = 'a' AND amount < 0.5 * LAST(h.amount)}
within: 1 minute
after_match: skip_past_last_event
""",
            {"a": 1.0},
        ),
    ),
)


class _RowPatterns:
    """A clause on its way through a stream. The column that nothing but bits reads is left out."""

    def __init__(self, pair: Pair) -> None:
        self._plan = pair.plan
        self._loops = CompiledRowPattern(self._plan)
        self._names = Names()
        conditions = [bind(each, {("kind",): 0}, {}, _EVENT) for each in self._loops.row_bits]
        self._bits_of_kinds = np.array(
            [
                sum(1 << bit for bit, holds in enumerate(conditions) if holds((kind,), ()) is True)
                for kind in pair.steps.weights
            ],
            np.int64,
        )
        self._waiting: tuple[I64, ...] = ()
        self._states = RowPatternStates()
        #: The events that the rows of the states are.
        self._held: list[EventTable] = []

    def advance(self, batch: Sequence[I64], watermark: int) -> Counts:
        """Put the rows in order, run them, and take what was found."""
        given: Sequence[I64] = batch
        if self._waiting:
            given = [np.concatenate(both) for both in zip(self._waiting, batch, strict=True)]
        time = given[1]
        self._waiting = tuple(column[time > watermark] for column in given)
        rows = np.flatnonzero(time <= watermark)
        rows = rows[np.lexsort((given[2][rows], time[rows], given[0][rows]))]
        key, time, offset, kind, amount = (column[rows] for column in given)
        nothing = np.zeros(len(rows), np.int32)
        columns: list[Vector] = [
            Numbers(amount.view(np.float64), np.zeros(len(rows), bool))
            if path == ("amount",)
            else nulls_of(slot.kind, len(rows))
            for path, slot in zip(self._plan.columns, self._loops.slots, strict=True)
        ]
        fresh = np.zeros(len(rows), ROW)
        fresh["event"] = np.arange(len(rows)) + sum(map(len, self._held))
        fresh["bits"] = self._bits_of_kinds[kind]
        new = EventTable(time, nothing, nothing, offset, nothing, columns)
        events = together([*self._held, new])
        run = RowPatternLoopRun(
            self._loops, self._states, events, fresh, key, watermark, self._names
        )
        matches = timeouts = 0
        for found in run:
            kinds = np.bincount(found.results["kind"], minlength=tables.TIMED_OUT + 1)
            matches += int(kinds[tables.MATCH])
            timeouts += int(kinds[tables.TIMED_OUT])
            assert len(found.output.result) == kinds[tables.MATCH]
        self._states = run.states
        self._held = [events.take(run.states.rows["event"])]
        self._states.rows["event"] = np.arange(len(self._states.rows))
        return Counts(matches, timeouts)


def _row_patterns(pair: Pair, stream: Stream) -> tuple[Counts, float]:
    """What the matcher of row patterns finds, and the seconds that it takes."""
    columns = (
        stream.key, stream.time, np.arange(len(stream)), stream.kind, stream.amount.view(np.int64),
    )  # fmt: skip
    starts = (0, *stream.ends[:-1])
    batches = [
        tuple(column[start:end] for column in columns)
        for start, end in zip(starts, stream.ends, strict=True)
    ]
    return _timed(_RowPatterns(pair).advance, list(zip(batches, stream.watermarks, strict=True)))


def _steps(pair: Pair, stream: Stream) -> tuple[Counts, float]:
    """The same of the rule of steps."""
    return _timed(Kernel().prepare(pair.steps.rule).advance, list(stream.batches()))


def _timed(
    advance: Callable[[Any, int], Counts], batches: Sequence[tuple[Any, int]]
) -> tuple[Counts, float]:
    gc.collect()
    matches = timeouts = 0
    began = process_time()
    for batch, watermark in batches:
        found = advance(batch, watermark)
        matches += found.matches
        timeouts += found.timeouts
    return Counts(matches, timeouts), process_time() - began


class Rates(NamedTuple):
    """What was found, and events per second of each side."""

    counts: Counts
    row_pattern: float
    steps: float


def compare(pair: Pair, events: int, keys: int, batch: int, runs: int) -> Rates:
    """Time both sides; DisagreementError where they find different numbers of matches.

    Timeouts differ: a rule of steps has one for each way that was open, a row pattern one for each
    row at which the search began.
    """
    stream = generate(pair.steps, events, keys, batch)
    few = generate(pair.steps, min(events, 1_000), keys, batch)
    _row_patterns(pair, few)
    _steps(pair, few)
    seconds: dict[str, list[float]] = {"row pattern": [], "steps": []}
    for _ in range(runs):
        counts, taken = _row_patterns(pair, stream)
        seconds["row pattern"].append(taken)
        by_steps, taken = _steps(pair, stream)
        seconds["steps"].append(taken)
        if by_steps.matches != counts.matches:
            raise DisagreementError(
                f"{pair.steps.name}: the rule of steps finds {by_steps.matches:,}, the row pattern "
                f"{counts.matches:,}"
            )
    row_pattern, steps = (events / statistics.median(each) for each in seconds.values())
    return Rates(counts, row_pattern, steps)


def main(
    events: Annotated[int, typer.Option(min=1, help="Events in a stream.")] = 1_000_000,
    keys: Annotated[int, typer.Option(min=1, help="Keys.")] = 10_000,
    batch: Annotated[int, typer.Option(min=1, help="Events before each watermark.")] = 100_000,
    runs: Annotated[int, typer.Option(min=1, help="Timed runs of each side, in turn.")] = 3,
) -> None:
    """Events per second of MATCH_RECOGNIZE and of rules of steps, on one core."""
    stay_on_one_core()
    typer.echo("| clause | matches | row pattern | rule of steps | ratio |")
    typer.echo(f"| --- |{' ---: |' * 4}")
    for pair in PAIRS:
        found = compare(pair, events, keys, batch, runs)
        rates = f"{found.row_pattern:,.0f} | {found.steps:,.0f}"
        ratio = f"{found.row_pattern / found.steps:.2f}"
        typer.echo(f"| {pair.steps.about} | {found.counts.matches:,} | {rates} | {ratio} |")


if __name__ == "__main__":
    typer.run(main)
