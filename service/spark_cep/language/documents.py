"""A text that is being written, with what is known around it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import PurePath
from types import MappingProxyType

from spark_cep.documents.places import split_lines
from spark_cep.language.answers import TextPosition
from spark_cep.pattern.document.loading import LoadedRule
from spark_cep.pattern.document.sql_file import SUFFIX as SQL_SUFFIX
from spark_cep.pattern.several_types import InputRecord
from spark_cep.rules.sources.folder import OF_CASES

EventTypes = Mapping[str | None, Sequence[InputRecord]]
"""The record types of events by the name of their input; ``None``: of any input."""

_LINE = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_SETTINGS = re.compile(r"^(kafka|inputs|registry|state|outputs):", re.MULTILINE)
_RULE = re.compile(r"^[\"']?(id|pattern|sql|ververica)[\"']?\s*:", re.MULTILINE)


class Language(StrEnum):
    """The kind of a text."""

    RULES = "rules"
    """Rules in YAML or JSON."""
    SQL = "sql"
    """A rule in SQL."""
    CASES = "cases"
    """Test cases."""
    SETTINGS = "settings"
    """The configuration of a job."""


def language_of(name: str, text: str) -> Language:
    """The language of a file, by its name and, for the configuration, by what stands in it."""
    path = PurePath(name)
    if path.suffix.lower() == SQL_SUFFIX:
        return Language.SQL
    if path.stem.lower().endswith(OF_CASES):
        return Language.CASES
    if _SETTINGS.search(text) and not _RULE.search(text):
        return Language.SETTINGS
    return Language.RULES


@dataclass(frozen=True)
class OpenDocument:
    """A text that is being written.

    Args:
        name: The name of its file, for messages.
        text: The whole text.
        language: What it is; :func:`language_of` tells.
        types: The record types of the events, where they are known: columns and types are then
            checked and completed.
        docs: What the schemas say of the fields of records, by ``record.field``.
        rules: The rules that test cases are about, where they are known.
        inputs: The inputs that there are, where they are known: no rule may name another one.
    """

    name: str
    text: str
    language: Language
    types: EventTypes = field(default_factory=lambda: MappingProxyType({}))
    docs: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    rules: tuple[LoadedRule, ...] = ()
    inputs: tuple[str, ...] | None = None

    @property
    def input_names(self) -> list[str]:
        """The names of inputs that are known."""
        if self.inputs is not None:
            return list(self.inputs)
        return [name for name in self.types if name is not None]

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The lines, without their ends."""
        return split_lines(self.text)

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(end.end() for end in _LINE.finditer(self.text))]

    def offset(self, position: TextPosition) -> int:
        """The number of characters before a position; one behind a line's end is at its end."""
        line = min(max(position.line, 0), len(self.lines) - 1)
        column = min(max(position.column, 0), len(self.lines[line]))
        return self._starts[line] + (column if line == position.line else len(self.lines[line]))

    def position(self, offset: int) -> TextPosition:
        """The position behind so many characters."""
        offset = min(max(offset, 0), len(self.text))
        low, high = 0, len(self._starts)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._starts[middle] <= offset else (low, middle)
        return TextPosition(low, min(offset - self._starts[low], len(self.lines[low])))

    def records(self, inputs: Sequence[str] = ()) -> list[InputRecord]:
        """The record types of the events of ``inputs``; of all where none is named."""
        chosen = [None, *inputs] if inputs else list(self.types)
        found = (record for name in chosen for record in self.types.get(name, ()))
        return list(dict.fromkeys(found))
