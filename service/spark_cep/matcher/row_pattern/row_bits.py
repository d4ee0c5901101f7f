"""The conditions that read a row alone, for many rows at once: a bit each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from spark_cep.columns.column_vectors import ColumnVectors
from spark_cep.columns.compilation import I64
from spark_cep.columns.vectors import Bytes, Numbers, Vector, concatenated, fixed, reader
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import Condition
from spark_cep.matcher.batch.events import SlotType
from spark_cep.pattern.expressions import ColumnPath, Evaluator, Expression, bind
from spark_cep.pattern.types import RecordType
from spark_cep.programs.event_masks import Bit, event_masks


class BitFailure(NamedTuple):
    """A condition that could not be computed: bits of the conditions that have it, the row."""

    bits: int
    row: int
    error: str


class RowBits:
    """Computes the bits of rows from their columns, ``slots``."""

    def __init__(
        self,
        conditions: Sequence[Expression],
        event: RecordType | None,
        slots: Sequence[SlotType],
        paths: Sequence[ColumnPath],
    ) -> None:
        self._slots, self._event = slots, event
        self._places = {path: place for place, path in enumerate(paths)}
        self._vectors = ColumnVectors()
        #: What Python computes, and whose bits need it.
        self._evaluated: list[tuple[Expression, Evaluator, int]] = []
        known = RecordTypes(() if event is None else (("", "", event),))
        bits = [Bit(Condition((), None, each), 0, 1 << n) for n, each in enumerate(conditions)]
        self._base = 0 if event is not None else (1 << len(bits)) - 1
        self._masks = event_masks(known, bits, 1, self._vectors)
        evaluated = [(part.expression, part.targets[0][1]) for part in self._masks.evaluated]
        if event is None:
            evaluated = [(each, 1 << number) for number, each in enumerate(conditions)]
        for expression, mask in evaluated:
            compute = bind(expression, self._places, {}, event)
            self._evaluated.append((expression, compute, mask))

    def of(self, columns: Sequence[Vector], count: int) -> tuple[I64, list[BitFailure]]:
        """The bits of so many rows, and what could not be computed, which is not true."""
        width = max(1, self._vectors.width)
        wholes = np.zeros((count, width), np.int64)
        doubles, nulls = wholes.view(np.float64), np.ones((count, width), np.uint8)
        texts: list[tuple[int, Bytes]] = []
        for (path, _), vector in self._vectors.values.items():
            column = columns[self._places[path]]
            if isinstance(column, Numbers):
                target = doubles if column.values.dtype == np.float64 else wholes
                target[:, vector] = column.values
                nulls[:, vector] = column.nulls
            elif isinstance(column, Bytes):
                texts.append((vector, column))
                nulls[:, vector] = column.nulls
        data = fixed(np.zeros(1, np.uint8))
        if texts:
            together = concatenated([column for _, column in texts])
            assert isinstance(together, Bytes)
            data = together.data
            for number, (vector, _) in enumerate(texts):
                wholes[:, vector] = together.places[number * count : (number + 1) * count]
        types = np.full(count, -1 if self._event is None else 0, np.int32)
        words = self._masks.of(types, data, wholes, doubles, nulls)
        bits: I64 = words[:, 0] | self._base
        failures = [
            failure
            for expression, compute, mask in self._evaluated
            for failure in self._evaluate(expression, compute, mask, columns, bits)
        ]
        return bits, failures

    def _evaluate(
        self,
        expression: Expression,
        compute: Evaluator,
        mask: int,
        columns: Sequence[Vector],
        bits: I64,
    ) -> Iterator[BitFailure]:
        """Take the bits of a part away where it is not true; once for each set of values."""
        places = [self._places[path] for path in sorted(expression.columns)]
        readers: list[tuple[int, Callable[[int], Any]]] = [
            (place, reader(columns[place], self._slots[place].kind)) for place in places
        ]
        values: list[Any] = [None] * len(self._slots)
        answers: dict[str, bool] = {}
        for row in np.flatnonzero(bits & mask).tolist():
            for place, read in readers:
                values[place] = read(row)
            key = repr([values[place] for place in places])
            true = answers.get(key)
            if true is None:
                try:
                    true = answers[key] = compute(values, ()) is True
                except Exception as error:  # noqa: BLE001  a rule's fault must not stop the job
                    yield BitFailure(mask, row, repr(error))
                    true = False
            if not true:
                bits[row] &= ~mask
