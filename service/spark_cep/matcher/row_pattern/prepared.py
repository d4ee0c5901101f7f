"""Compiled loops of row patterns, made ready before the first batch needs them."""

from __future__ import annotations

import numpy as np

from spark_cep.columns.compilation import NONE
from spark_cep.compiler.row_pattern import plan_query
from spark_cep.matcher.batch.events import EventTable, Names
from spark_cep.matcher.row_pattern.loops import tables, thread_loop
from spark_cep.matcher.row_pattern.matcher import CompiledRowPattern, RowPatternLoopRun
from spark_cep.matcher.row_pattern.states import RowPatternStates
from spark_cep.pattern.expressions.canonical import expression
from spark_cep.pattern.expressions.nodes import ColumnAt, RowAggregate, RowPosition, RowReference
from spark_cep.pattern.sql.query import Measure, Query
from spark_cep.pattern.sql.row_pattern import PatternVariable
from spark_cep.pattern.sql.statement import RowsPerMatch, SkipTo
from spark_cep.pattern.types import STRING, RecordType


def prepare() -> None:
    """Compile the loops, or load what was compiled before; they are the same for every plan.

    Raises OSError when they would have to be kept in a cache that cannot be written.
    """
    values = ColumnAt(RowPosition(), ("s",)), RowAggregate("COUNT")
    measures = [Measure("m", expression(RowReference(value)), STRING) for value in values]
    # Not from a text: to make the parser of statements takes longer than all of this.
    query = Query(
        text="", source="", input="", partition=(), order=(), measures=tuple(measures),
        rows=RowsPerMatch.ONE_ROW, skip=SkipTo.PAST_LAST_ROW, target=(),
        pattern=PatternVariable("A"),
        within_ms=None, variables=("A",), unions={}, defines={}, outputs=(),
        event=RecordType({"s": STRING}),
    )  # fmt: skip
    matcher = CompiledRowPattern(plan_query(query))
    states, events = RowPatternStates(), EventTable.of([], Names(), matcher.slots)
    keys = np.zeros(0, np.int64)
    for found in RowPatternLoopRun(matcher, states, events, states.rows, keys, 0, Names()):
        assert not len(found.output.result)
    nodes, one = np.zeros(1, tables.NODE), np.zeros(1, np.int64)
    nodes["previous"] = NONE
    thread_loop.path_back(nodes, one, 0, one)
