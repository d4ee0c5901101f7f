"""A rule and events to try it with, as the page has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from spark_cep.cases.document.shape import BEGINNING
from spark_cep.pattern.document.sql_file import SUFFIX as SQL_SUFFIX

MOST_ROWS: Final = 2_000
"""Most rows of the table."""
MOST_TEXT: Final = 200_000
"""Most characters of a rule or a schema."""
MOST_KEYS: Final = 50
"""Keys whose account is shown."""
OF_ALL: Final = ""
"""Stands for all inputs where schemas are by input."""


class RowKind(StrEnum):
    """The kind of a row: an event, or what happens between two of them, as in a test case."""

    EVENT = "event"
    CLOCK = "clock"
    WATERMARK = "watermark"
    RESTART = "restart"
    FINISH = "finish"


@dataclass(frozen=True, slots=True)
class TrialRow:
    """A row of the table, as it is written in its cells. ``at``: a time as in a test case."""

    kind: RowKind = RowKind.EVENT
    at: str = ""
    cells: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    input: str = ""
    of_type: str = ""


@dataclass(frozen=True)
class Trial:
    """Everything that the page shows but for results.

    Args:
        file: The name of the rule's file, which says by its suffix whether the rule is in SQL.
        text: The rule's text, without test cases.
        rows: The table of events.
        schemas: The text of an Avro schema by input; ``OF_ALL`` for all of them.
        rule: The id of the rule that is tried, where the text has several.
        case: The name of the test case that this is.
        start: Where the clock begins, in ms since 1970.
        allowed_disorder: As a job's ``time.allowed_disorder``, in ms.
        event_time: The column that is filled in with the event's time.
    """

    file: str
    text: str
    rows: tuple[TrialRow, ...] = ()
    schemas: Mapping[str, str] = field(default_factory=dict)
    rule: str | None = None
    case: str = "tried"
    start: int = BEGINNING
    allowed_disorder: int = 0
    event_time: str | None = None

    @property
    def in_sql(self) -> bool:
        """Return whether the rule is in SQL."""
        return self.file.lower().endswith(SQL_SUFFIX)

    @property
    def event_rows(self) -> list[int]:
        """The places of the rows that are events, in the order of their numbers."""
        return [place for place, row in enumerate(self.rows) if row.kind is RowKind.EVENT]

    @property
    def columns(self) -> list[str]:
        """The columns of the table, in the order in which they are met."""
        return list(dict.fromkeys(name for row in self.rows for name in row.cells))
