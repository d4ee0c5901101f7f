"""Failures of results: in measures, and in AFTER MATCH SKIP."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class SkipFault(StrEnum):
    """Why AFTER MATCH SKIP TO a variable failed, as the standard's conditions and Trino name it."""

    TARGET_ABSENT = "SKIP_TARGET_ABSENT"
    TO_MATCH_START = "SKIP_TO_MATCH_START"

    @property
    def meaning(self) -> str:
        """The reason in words."""
        if self is SkipFault.TARGET_ABSENT:
            return "the match has no row of the variable to skip to"
        return "the row to skip to is the match's first, where it would be found again"


class MeasureFailure(NamedTuple):
    """A measure that could not be computed on a row of the result number ``result`` of a piece; it
    is NULL."""

    measure: str
    result: int
    error: str
