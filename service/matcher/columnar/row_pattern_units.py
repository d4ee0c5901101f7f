"""What is remembered of keys for rules in SQL: a row for each rule and key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from service.matcher.columnar.compilation import I64
from service.matcher.columnar.vectors import Bytes, Rows, concatenated


def _no_numbers() -> I64:
    return np.zeros(0, np.int64)


@dataclass(slots=True)
class RowPatternUnits:
    """``key`` and ``rule`` as in other units; ``due``, the watermark at which something is due;
    ``live``, how many threads there are; ``state``, as :mod:`service.matcher.row_pattern.snapshot`
    writes it. Sorted by key and rule."""

    key: I64 = field(default_factory=_no_numbers)
    rule: I64 = field(default_factory=_no_numbers)
    due: I64 = field(default_factory=_no_numbers)
    live: I64 = field(default_factory=_no_numbers)
    state: Bytes = field(default_factory=lambda: Bytes.of([]))

    def __len__(self) -> int:
        return len(self.key)

    def take(self, rows: Rows) -> RowPatternUnits:
        """Those of some rows, in this order."""
        return RowPatternUnits(
            self.key[rows], self.rule[rows], self.due[rows], self.live[rows], self.state.take(rows)
        )


def units_together(parts: Sequence[RowPatternUnits]) -> RowPatternUnits:
    """Several as one, in this order."""
    parts = [part for part in parts if len(part)]
    if len(parts) <= 1:
        return parts[0] if parts else RowPatternUnits()
    state = concatenated([part.state for part in parts])
    assert isinstance(state, Bytes)
    return RowPatternUnits(
        np.concatenate([part.key for part in parts]),
        np.concatenate([part.rule for part in parts]),
        np.concatenate([part.due for part in parts]),
        np.concatenate([part.live for part in parts]),
        state,
    )
