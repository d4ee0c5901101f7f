"""The naive matcher of row patterns: one key and one row at a time. The compiled one
(:mod:`spark_cep.matcher.row_pattern`) has to give the same answers and to remember the same."""

from tests.reference.row_pattern.compiled import (
    Loops,
    Run,
    States,
    key_states,
    states_of,
)
from tests.reference.row_pattern.matcher import RowPatternMatcher
from tests.reference.row_pattern.state import KeyState

__all__ = ["KeyState", "Loops", "RowPatternMatcher", "Run", "States", "key_states", "states_of"]
