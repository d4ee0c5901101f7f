"""The events that are measured: those that passed the filter, as columns, cut into batches.

Keys are drawn evenly. However many there are, events of a key are ten seconds apart on average and
arrive up to a second out of order; the watermark stays a second behind the newest event of the
batches so far, so none is late. The last watermark is a day ahead: whatever is open runs out. The
same seed gives the same events.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.matcher.scenarios import Scenario
from spark_cep.compiler.rule_set import Partitioning, RuleSetPlan
from spark_cep.model import Coordinates
from spark_cep.pipeline.wire.event_packets import conditions_column
from spark_cep.runner.values import ValueInputs, ValueRecord, records_of

Integers = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]

_FIRST_MS = 1_700_000_000_000
_MEAN_GAP_MS = 10_000
_DISORDER_MS = 1_000
_DAY_MS = 86_400_000


@dataclass(frozen=True)
class Batch:
    """Events in order of arrival. ``key`` holds positions in ``keys``, ``bits`` the truth of the
    rule's conditions, ``columns`` one array for each of the rule's slots."""

    keys: Sequence[str]
    key: Integers
    time: Integers
    offset: Integers
    bits: Integers
    columns: tuple[npt.NDArray[Any], ...]


@dataclass(frozen=True)
class Stream:
    """All events of one measurement. ``ends`` and ``watermarks`` belong to the batches."""

    scenario: Scenario
    keys: tuple[str, ...]
    key: Integers
    time: Integers
    kind: Integers
    amount: Doubles
    ends: tuple[int, ...]
    watermarks: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.time)

    def batches(self) -> Iterator[tuple[Batch, int]]:
        """Each batch with the watermark that follows it."""
        rule = self.scenario.rule
        bits = _bits_of_kinds(rule, tuple(self.scenario.weights))[self.kind]
        known: dict[str, npt.NDArray[Any]] = {"amount": self.amount}
        columns = tuple(known[".".join(slot.path)] for slot in rule.slots)
        offset = np.arange(len(self), dtype=np.int64)
        start = 0
        for end, watermark in zip(self.ends, self.watermarks, strict=True):
            cut = slice(start, end)
            cells = tuple(column[cut] for column in columns)
            yield (
                Batch(self.keys, self.key[cut], self.time[cut], offset[cut], bits[cut], cells),
                watermark,
            )
            start = end


def generate(scenario: Scenario, events: int, keys: int, batch: int, seed: int = 7) -> Stream:
    """The stream for ``scenario``: ``events`` over ``keys`` keys, ``batch`` at a time."""
    source = np.random.default_rng(seed)
    key = source.integers(keys, size=events, dtype=np.int64)
    due = (np.arange(events, dtype=np.float64) * (_MEAN_GAP_MS / keys)).astype(np.int64)
    time = _FIRST_MS + due - source.integers(_DISORDER_MS, size=events, dtype=np.int64)
    odds = np.fromiter(scenario.weights.values(), np.float64)
    kind = np.searchsorted(odds.cumsum()[:-1], source.random(events), side="right")
    # Whole numbers: their sums are exact in whatever order they are added.
    amount = source.integers(1, 101, size=events).astype(np.float64)
    ends = (*range(batch, events, batch), events)
    newest = np.maximum.accumulate(time)
    watermarks = [int(newest[end - 1]) - _DISORDER_MS for end in ends]
    watermarks[-1] = int(newest[-1]) + _DAY_MS
    return Stream(
        scenario=scenario,
        keys=tuple(f"user-{number:07d}" for number in range(keys)),
        key=key,
        time=time,
        kind=kind.astype(np.int64),
        amount=amount,
        ends=ends,
        watermarks=tuple(watermarks),
    )


def _bits_of_kinds(rule: Partitioning, kinds: Sequence[str]) -> Integers:
    """The mask of each kind. What no step wants would not have passed the filter."""
    inputs = ValueInputs()
    event = inputs.number("events", None)
    key = {path[0]: "k" for part in rule.key for path in part.columns}
    records = [
        ValueRecord.of(Coordinates("events", 0, number), event, 0, {**key, "kind": kind})
        for number, kind in enumerate(kinds)
    ]
    (read,) = records_of(records)
    decoded = inputs.packer(RuleSetPlan((rule,))).decoder.read(read, None).rows
    masks: Integers = decoded.column(conditions_column(0)).to_numpy()
    wanted = sum(1 << bit for bit in rule.rules[0].bits)
    for kind, mask in zip(kinds, masks.tolist(), strict=True):
        if not mask & wanted:
            raise ValueError(f"rule {rule.rules[0].plan.rule.id}: no step wants kind {kind!r}")
    return masks
