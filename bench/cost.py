"""The cost of the events of one key, by shape of rule and number of events: the batch runner alone,
without Spark and Kafka.

Events come in batches of ``BATCH``. The last of them, one more of the same, with which a limit of
events may be exceeded, and, instead of that, the closing ones come one a batch, each of which is
applied ``REPETITIONS`` times from the state before it. The shortest counts, so that what else the
machine does counts little; the longest of them is the slowest event. A batch of one event has what
it costs to read and write the state of its key in it. Times are of the processor.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from time import process_time
from typing import Any, NamedTuple

from bench.cost_shapes import CLOSING, EVENT, Shape
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import RuleSetPlan, compile_rules
from spark_cep.model import Coordinates
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pipeline.match.watermark import BEGINNING
from spark_cep.runner.batch import Batch, BatchResults, RunSettings
from spark_cep.runner.runner import Runner
from spark_cep.runner.state import RunState
from spark_cep.runner.values import ValueInputs, ValueRecord, records_of

BATCH, REPETITIONS = 1_000, 3
#: A shape that took longer than this, in seconds, is not run over more events.
LONGEST = 20.0
_TYPES = RecordTypes((("events", "Event", EVENT),))
_SETTINGS = RunSettings(key_groups=1)


class Cost(NamedTuple):
    """The cost of one shape over ``events`` events: seconds of all that come in batches, and of the
    slowest one that comes alone; how many dead letters name a limit."""

    events: int
    seconds: float
    slowest: float
    limited: int

    @property
    def nanoseconds(self) -> float:
        """Nanoseconds an event."""
        return self.seconds / self.events * 1e9


class Costs(NamedTuple):
    """The costs of a shape by number of events, the fewest first."""

    shape: Shape
    costs: Sequence[Cost]

    @property
    def growth(self) -> float | None:
        """The power of the number of events with which seconds grow, over the last step: 1 is
        linear."""
        if len(self.costs) < 2:
            return None
        before, after = self.costs[-2:]
        return math.log(after.seconds / before.seconds) / math.log(after.events / before.events)


def cost(shape: Shape, counts: Sequence[int]) -> Costs:
    """Measure a shape. It is not run over more events where it took ``LONGEST``."""
    run = _Run(shape)
    run.measured(10)  # compiles, or loads what was compiled
    costs: list[Cost] = []
    for count in sorted(counts):
        costs.append(run.measured(count))
        if costs[-1].seconds > LONGEST:
            break
    return Costs(shape, costs)


class _Alone(NamedTuple):
    """An event in a batch of its own: seconds, dead letters that name a limit, and the state
    behind it."""

    seconds: float
    limited: int
    state: RunState


class _Run:
    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._inputs = ValueInputs(_TYPES)
        self._number = self._inputs.number("events", "Event")
        loaded = load_rules(shape.document, shape.name)
        self._plan: RuleSetPlan = compile_rules([each.rule for each in loaded], _TYPES)

    def measured(self, count: int) -> Cost:
        """The cost of so many events."""
        runner, seconds, limited = self._runner(None), 0.0, 0
        last = count - 1
        for start in range(0, last, BATCH):
            batch = self._batch(self._shape.events, start, min(start + BATCH, last))
            passed, results = _applied(runner, batch)
            seconds += passed
            limited += _limited(results)
        at_last = self._alone(runner.snapshot(), self._shape.events, last)
        alone = [at_last, self._alone(at_last.state, self._shape.events, count)]
        state = at_last.state
        closing = count + self._shape.late
        for number in range(closing, closing + CLOSING):
            alone.append(self._alone(state, self._shape.closing, number))
            state = alone[-1].state
        limited += sum(each.limited for each in alone)
        return Cost(count, seconds, max(each.seconds for each in alone), limited)

    def _alone(self, state: RunState, event: Any, number: int) -> _Alone:
        batch, shortest = self._batch(event, number, number + 1), math.inf
        for _ in range(REPETITIONS):
            runner = self._runner(state)
            passed, results = _applied(runner, batch)
            shortest = min(shortest, passed)
        return _Alone(shortest, _limited(results), runner.snapshot())

    def _runner(self, state: RunState | None) -> Runner:
        return Runner(self._plan, self._inputs, _SETTINGS, state, columns=True)

    def _batch(self, event: Any, start: int, end: int) -> Batch:
        records = [
            ValueRecord.of(
                Coordinates("events", 0, number),
                self._number,
                number * 1_000_000,
                {"k": "key", **event(number)},
            )
            for number in range(start, end)
        ]
        return Batch(list(records_of(records)), watermark=max((end - 1) * 1_000, BEGINNING))


def _applied(runner: Runner, batch: Batch) -> tuple[float, BatchResults]:
    start = process_time()
    results = runner.apply(batch)
    return process_time() - start, results


def _limited(results: BatchResults) -> int:
    return sum(each.reason == "limit_reached" for each in results.outputs.dead_letters)


def table(found: Iterable[Costs]) -> Iterator[str]:
    """The lines of a table, as shapes are measured."""
    yield "| shape | events | seconds | ns an event | growth | slowest event | limits |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for costs in found:
        for each in costs.costs:
            growth = costs.growth if each is costs.costs[-1] else None
            yield (
                f"| {costs.shape.name} | {each.events:,} | {each.seconds:.3f}"
                f" | {each.nanoseconds:,.0f} | {'' if growth is None else f'{growth:.2f}'}"
                f" | {each.slowest * 1e3:.1f} ms | {each.limited} |"
            )
