"""The machine of MATCH_RECOGNIZE over arrays: rows of many keys in, results and state as columns.

It does what :mod:`service.matcher.row_pattern` does for one key and a row at a time, and is held
against it, state and all. ``lowering`` makes tables of a plan, ``row_bits`` computes what reads a
row alone, ``key_loop`` and ``thread_loop`` are compiled by Numba, ``states`` is what is remembered
between two calls, ``found`` what is found. :class:`CompiledRowPattern` puts them together.
"""

from service.matcher.row_pattern.compiled.found import (
    ConditionFailure,
    Found,
    MeasureFailure,
    OutputColumns,
)
from service.matcher.row_pattern.compiled.matcher import CompiledRowPattern, Run
from service.matcher.row_pattern.compiled.states import RowPatternStates

__all__ = [
    "CompiledRowPattern",
    "ConditionFailure",
    "Found",
    "MeasureFailure",
    "OutputColumns",
    "RowPatternStates",
    "Run",
]
