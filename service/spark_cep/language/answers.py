"""The answers about a text: plain data, of no protocol."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class TextPosition(NamedTuple):
    """A place between two characters: line and character, from 0."""

    line: int
    column: int


class TextRange(NamedTuple):
    """The characters from ``start`` up to ``end``, which may stand in another line."""

    start: TextPosition
    end: TextPosition

    def overlaps(self, other: TextRange) -> bool:
        """Return whether both share a character, or touch."""
        return self.start <= other.end and other.start <= self.end


@dataclass(frozen=True, slots=True)
class Edit:
    """A change: ``text`` in place of what stands at ``range``."""

    range: TextRange
    text: str


class Severity(StrEnum):
    """The weight of a diagnostic: the rule cannot run, or it may."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class RelatedPlace:
    """Another place that a diagnostic is about."""

    message: str
    range: TextRange


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One thing that is wrong. ``code``: of a warning (docs/checks.md explains each); ``help``:
    what would be right; ``rule`` and ``step``: those that it is about; ``fix``: the change that
    settles it without doubt."""

    range: TextRange
    severity: Severity
    message: str
    code: str | None = None
    help: str | None = None
    rule: str | None = None
    step: str | None = None
    related: tuple[RelatedPlace, ...] = ()
    fix: Edit | None = None


class NameKind(StrEnum):
    """The kind of a completion or a symbol."""

    KEY = "key"
    VALUE = "value"
    COLUMN = "column"
    STEP = "step"
    FUNCTION = "function"
    KEYWORD = "keyword"
    UNIT = "unit"
    RULE = "rule"
    GROUP = "group"
    MEASURE = "measure"
    CASE = "case"
    SECTION = "section"


@dataclass(frozen=True, slots=True)
class Completion:
    """Something that may stand at the cursor: ``edit`` writes it in place of what stands there.
    ``detail``: its type or signature, in a few words; ``documentation``: in Markdown."""

    label: str
    kind: NameKind
    edit: Edit
    detail: str = ""
    documentation: str = ""


@dataclass(frozen=True, slots=True)
class Hover:
    """An explanation of the text at ``range``, in Markdown."""

    range: TextRange
    text: str


@dataclass(frozen=True, slots=True)
class CodeAction:
    """A change that settles a diagnostic. ``preferred``: it is what is meant without doubt."""

    title: str
    edits: tuple[Edit, ...]
    diagnostic: Diagnostic
    preferred: bool = False


@dataclass(frozen=True, slots=True)
class Symbol:
    """A named part of the text. ``name_range``: where the name stands, within ``range``."""

    name: str
    kind: NameKind
    range: TextRange
    name_range: TextRange
    detail: str = ""
    children: tuple[Symbol, ...] = ()
