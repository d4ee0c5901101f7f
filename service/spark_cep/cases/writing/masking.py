"""Replaces values of personal columns, the same by the same, so that rules find what they found.

A replacement has the type of its value: ``mask-1`` for text, ``1001`` for a number. Which value was
replaced by which is kept nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

_FIRST: Final = 1_001
_FIRST_TIME: Final = datetime(2000, 1, 1, tzinfo=UTC)


class Masking:
    """Masks ``columns`` (``a.b`` for a field of a record) of all events with one numbering by
    column name, so that a column that several inputs have is replaced alike."""

    def __init__(self, columns: Iterable[str]) -> None:
        self.columns = tuple(dict.fromkeys(columns))
        self._replaced: dict[tuple[str, type, Any], int] = {}
        self._numbers: dict[str, int] = {}
        #: Masked columns that some event had.
        self.met: set[str] = set()

    def masked(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The columns of an event with replacements."""
        found = dict(values)
        for column in self.columns:
            self._mask(found, column, column.split("."))
        return found

    def _mask(self, values: dict[str, Any], column: str, path: list[str]) -> None:
        name, *below = path
        if name not in values:
            return
        if below:
            inner = values[name]
            if isinstance(inner, Mapping):
                values[name] = dict(inner)
                self._mask(values[name], column, below)
            return
        self.met.add(column)
        values[name] = self._replacement(values[name], column)

    def _replacement(self, value: Any, column: str) -> Any:
        match value:
            case None | bool():
                return value  # there is no other value to hide behind
            case Mapping():
                return {name: self._replacement(each, column) for name, each in value.items()}
            case list() | tuple():
                return [self._replacement(each, column) for each in value]
        number = self._number(value, column)
        match value:
            case int():
                return _FIRST - 1 + number
            case float():
                return float(_FIRST - 1 + number)
            case Decimal():
                return Decimal(_FIRST - 1 + number)
            case bytes():
                return f"mask-{number}".encode("ascii")
            case datetime():
                return _FIRST_TIME + timedelta(seconds=number)
            case date():
                return _FIRST_TIME.date() + timedelta(days=number)
        return f"mask-{number}"

    def _number(self, value: Any, column: str) -> int:
        known = (column, type(value), value)
        if known not in self._replaced:
            self._numbers[column] = self._numbers.get(column, 0) + 1
            self._replaced[known] = self._numbers[column]
        return self._replaced[known]
