"""A statement as it is written: names with their places, expressions as text.

Places are offsets into the statement's text, the end exclusive.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from spark_cep.pattern.sql.row_pattern import RowPattern, Span


class RowsPerMatch(StrEnum):
    """The rows that a match puts out; the values are SQL's words."""

    ONE_ROW = "ONE ROW PER MATCH"
    SHOW_EMPTY = "ALL ROWS PER MATCH SHOW EMPTY MATCHES"
    OMIT_EMPTY = "ALL ROWS PER MATCH OMIT EMPTY MATCHES"
    WITH_UNMATCHED = "ALL ROWS PER MATCH WITH UNMATCHED ROWS"


class SkipTo(StrEnum):
    """The place where the search continues after a match that is not empty."""

    PAST_LAST_ROW = "PAST LAST ROW"
    NEXT_ROW = "TO NEXT ROW"
    FIRST = "TO FIRST"
    LAST = "TO LAST"


@dataclass(frozen=True, slots=True)
class Named:
    """A name as the author spells it (``written``), without quotes; ``name`` identifies
    the variable, in upper case unless it is quoted."""

    name: str
    written: str
    span: Span


@dataclass(frozen=True, slots=True)
class Fragment:
    """The text of an expression, in which comments are blanks and names are quoted by backticks."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class SortItem:
    """An item of ORDER BY."""

    column: Fragment
    descending: bool = False
    nulls_first: bool | None = None


@dataclass(frozen=True, slots=True)
class ResultOrder:
    """ORDER BY behind the clause."""

    items: tuple[SortItem, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class RowsOf:
    """The rows in FROM: those of ``input``, or of a sub-query over it, in which it may have another
    name (``alias``), those for which the condition ``where`` holds."""

    input: Named
    alias: Named | None = None
    where: Fragment | None = None


@dataclass(frozen=True, slots=True)
class WrittenMeasure:
    """``expression AS name``."""

    expression: Fragment
    name: Named


@dataclass(frozen=True, slots=True)
class SkipClause:
    """AFTER MATCH SKIP; ``target`` for TO FIRST and TO LAST."""

    skip: SkipTo = SkipTo.PAST_LAST_ROW
    target: Named | None = None


@dataclass(frozen=True, slots=True)
class Subset:
    """``name = (members)``."""

    name: Named
    members: tuple[Named, ...]


@dataclass(frozen=True, slots=True)
class Define:
    """``variable AS condition``."""

    variable: Named
    condition: Fragment


@dataclass(frozen=True, slots=True)
class Selected:
    """An item of the SELECT list; ``name`` is what AS gives."""

    column: Fragment
    name: Named | None


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement. ``source`` names its text in messages; ``rows_of`` is what FROM names,
    ``alias`` the name of the clause's result."""

    text: str
    source: str
    select: tuple[Selected, ...]
    rows_of: RowsOf
    alias: Named | None
    partition: tuple[Fragment, ...]
    order: tuple[SortItem, ...]
    measures: tuple[WrittenMeasure, ...]
    rows: RowsPerMatch
    after_match: SkipClause
    mode: Named | None
    pattern: RowPattern
    within: Fragment | None
    subsets: tuple[Subset, ...]
    defines: tuple[Define, ...]
    result_order: ResultOrder | None
