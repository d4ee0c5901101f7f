"""Tables of events and results in the pages, read as values and compared with what a rule finds.

A table has its kind in the line before: `Events:`, `Matches:` and so on. Cells are times of day,
numbers or text; an empty cell is NULL.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

#: The day of all times in tables.
DAY = datetime(2026, 1, 5, tzinfo=UTC)

Cells = list[dict[str, str]]

_TABLE = re.compile(r"^(\w[\w ]+?):\n\n((?:\|.*\n)+)", re.MULTILINE)
_CLOCK = re.compile(r"(\d\d):(\d\d)(?::(\d\d))?")
_NUMBER = re.compile(r"\d+\.\d+")
_TYPES = {
    datetime: {"type": "long", "logicalType": "timestamp-millis"},
    int: "long",
    float: "double",
    str: "string",
}


def tables(text: str) -> dict[str, Cells]:
    """The tables of a section by kind, each row with the names of its columns."""
    found = {}
    for name, table in _TABLE.findall(text):
        header, _, *rows = (
            [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()
        )
        found[name] = [dict(zip(header, row, strict=True)) for row in rows]
    return found


def value(cell: str) -> Any:
    """The value that a cell stands for."""
    if clock := _CLOCK.fullmatch(cell):
        hours, minutes, seconds = (int(part or 0) for part in clock.groups())
        return DAY + timedelta(hours=hours, minutes=minutes, seconds=seconds)
    if cell.isdigit():
        return int(cell)
    return float(cell) if _NUMBER.fullmatch(cell) else cell or None


def cell(found: Any) -> str:
    """A value as a table has it."""
    if isinstance(found, datetime):
        return f"{found:%H:%M:%S}" if found.second else f"{found:%H:%M}"
    if isinstance(found, Sequence) and not isinstance(found, str):
        return ", ".join(map(cell, found))
    return "" if found is None else str(found)


def schema(events: Cells) -> dict[str, Any]:
    """An Avro schema whose columns have the types of their cells."""
    fields = []
    for name in events[0]:
        values = [value(event[name]) for event in events]
        (kind,) = {type(each) for each in values if each is not None}
        kinds = ["null", _TYPES[kind]] if None in values else _TYPES[kind]
        fields.append({"name": name, "type": kinds})
    return {"type": "record", "name": "Event", "fields": fields}
