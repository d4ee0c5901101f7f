"""Places of a document's parts in its text, for problems that underline them.

A part is named by its path in the document: ``("pattern", 1, "group", 0, "where")``. The tree of
a rule has the same shape, so whatever checks the tree can name a part without knowing YAML. A path
that has no place of its own (a missing key, an item of a value written without a list) stands at
its nearest ancestor that has one.

Offsets inside an expression count from its first character that is not blank. They are exact in
plain, quoted and literal block scalars; in a scalar that YAML folds over several lines the first
line is underlined instead.

A rule that was never text has no lines. Its problems name the field, and underline the expression
alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from spark_cep.errors import Problem, Related, Span

Path = tuple[str | int, ...]
RelatedPart = tuple[str, Path, tuple[int, int] | None]
"""Another part that a problem is about: what stands there, its path, and characters inside its
scalar."""

_LINE_END = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
#: What ends text without quotes: in brackets, and anywhere; and what no such text begins with.
_OF_FLOW = frozenset(",[]{}")
_ENDS_PLAIN = re.compile(r":(?:\s|$)|\s#")
_BEGINS_OTHER = re.compile(r"[-?&*!|>%@`'\"#]")
_QUOTED = {
    "'": re.compile("''|.", re.DOTALL),
    '"': re.compile(r"\\(?:x..|u.{4}|U.{8}|.)|.", re.DOTALL),
}
"""A character of a quoted scalar as it is written, by the quote."""


def split_lines(text: str) -> tuple[str, ...]:
    """The lines of a text, cut where YAML cuts them."""
    return tuple(_LINE_END.split(text))


def field_of(path: Path) -> str | None:
    """The field at ``path``, as people name it: ``where`` of a step, ``within.gap`` of a rule."""
    here = path
    while len(here) > 1 and here[0] in ("pattern", "group") and isinstance(here[1], int):
        here = here[2:]
    return ".".join(part for part in here if isinstance(part, str)) or None


@dataclass(frozen=True, slots=True)
class Mark:
    """A node's extent: 0-based lines and columns, and the scalar's text and style if it is one."""

    line: int
    column: int
    end_line: int
    end_column: int
    value: str | None = None
    style: str | None = None


@dataclass(frozen=True, slots=True)
class Places:
    """The places of one document's parts in ``lines`` of ``source``.

    Without any place, as for a rule that was never text, problems name no line, but the field;
    ``texts`` are then its expressions, without blanks around them. ``origins``: where the parts of
    a document that was made of another stand in that one, which messages name.
    """

    source: str
    lines: tuple[str, ...]
    keys: Mapping[Path, Mark] = field(default_factory=lambda: MappingProxyType({}))
    values: Mapping[Path, Mark] = field(default_factory=lambda: MappingProxyType({}))
    steps: Mapping[Path, str] = field(default_factory=lambda: MappingProxyType({}))
    rule: str | None = None
    texts: Mapping[Path, str] = field(default_factory=lambda: MappingProxyType({}))
    origins: Mapping[Path, str] = field(default_factory=lambda: MappingProxyType({}))

    def problem(
        self,
        message: str,
        path: Path,
        *,
        allowed: str | None = None,
        at: Literal["key", "value"] = "value",
        offsets: tuple[int, int] | None = None,
        code: str | None = None,
        fix: str | None = None,
        related: Sequence[RelatedPart] = (),
    ) -> Problem:
        """A problem at ``path``: its key, its value, or characters inside its scalar. ``fix``: what
        is right in the place of these; ``related``: other parts that it is about."""
        if self.is_text:
            span: Span | None = self.span(path, at=at, offsets=offsets)
            excerpt = self._line(span.line - 1) if span is not None else None
        else:
            span, excerpt = self._in_expression(path, offsets)
        origin = self._origin(path)
        return Problem(
            message=message if origin is None else f"`{origin}`: {message}",
            source=self.source,
            span=span,
            excerpt=excerpt,
            rule=self.rule,
            step=self.step_at(path),
            allowed=allowed,
            field=None if self.is_text else field_of(path),
            code=code,
            fix=None if fix is None or span is None else self._written(path, span, offsets, fix),
            related=tuple(
                Related(said, self.span(part, offsets=at_offsets))
                for said, part, at_offsets in related
                if self.is_text
            ),
        )

    def _written(
        self, path: Path, span: Span, offsets: tuple[int, int] | None, fix: str
    ) -> str | None:
        """The text that makes the scalar at a path have ``fix`` in place of these characters, which
        stand at ``span``; ``None`` where that is not sure."""
        mark = self.values.get(path)
        if not self.is_text or mark is None or mark.value is None or "\n" in fix:
            return None
        if offsets is not None:
            lead = len(mark.value) - len(mark.value.lstrip())
            over_lines = "\n" in mark.value[offsets[0] + lead : offsets[1] + lead]
            if over_lines or self._inside(mark, mark.value, *offsets) != span:
                return None
        elif mark.style is not None or mark.line != mark.end_line:
            return None
        match mark.style:
            case "'":
                return fix.replace("'", "''")
            case '"':
                return fix.replace("\\", r"\\").replace('"', r"\"")
            case None:
                return fix if self._can_be_plain(mark, span, fix) else None
        return fix

    def _can_be_plain(self, mark: Mark, span: Span, fix: str) -> bool:
        """Return whether text without quotes may have ``fix`` in it."""
        replaced = self._line(span.line - 1)[span.column - 1 :][: span.length]
        begins = (span.line - 1, span.column - 1) == (mark.line, mark.column)
        if set(fix) & _OF_FLOW - set(replaced) or _ENDS_PLAIN.search(fix):
            return False
        return not (begins and _BEGINS_OTHER.match(fix))

    def _origin(self, path: Path) -> str | None:
        parts = (path[:length] for length in range(len(path), 0, -1))
        return next((self.origins[part] for part in parts if part in self.origins), None)

    @property
    def is_text(self) -> bool:
        """Return whether the rule stands in a text, so that its parts have lines."""
        return bool(self.values) or bool(self.keys)

    def place(self, path: Path) -> str:
        """Return the place of a part in the form that messages about another part use."""
        return f"{self.source}:{self.span(path).line}" if self.is_text else self.source

    def ends_at_comment(self, path: Path) -> bool:
        """Return whether the part is text without quotes that a comment on the same line
        follows."""
        mark = self.values.get(path)
        if mark is None or mark.value is None or mark.style is not None:
            return False
        return self._line(mark.end_line)[mark.end_column :].lstrip().startswith("#")

    def step_at(self, path: Path) -> str | None:
        """The name of the innermost step that ``path`` lies in."""
        for length in range(len(path), 0, -1):
            name = self.steps.get(path[:length])
            if name is not None:
                return name
        return None

    def span(
        self,
        path: Path,
        *,
        at: Literal["key", "value"] = "value",
        offsets: tuple[int, int] | None = None,
    ) -> Span:
        """The span of a part; of its nearest ancestor if it has none."""
        for length in range(len(path), -1, -1):
            part = path[:length]
            if at == "key" and part in self.keys:
                return self._whole(self.keys[part])
            if part in self.values:
                mark = self.values[part]
                exact = None
                if offsets is not None and mark.value is not None:
                    exact = self._inside(mark, mark.value, *offsets)
                return exact or self._whole(mark)
        return Span(1, 1)

    def _in_expression(
        self, path: Path, offsets: tuple[int, int] | None
    ) -> tuple[Span | None, str | None]:
        text = self.texts.get(path)
        if text is None or offsets is None:
            return None, None
        start, end = offsets
        before = split_lines(text[:start])
        line = split_lines(text)[len(before) - 1]
        column = min(len(before[-1]), len(line))
        length = min(max(end, start + 1) - start, len(line) - column)
        return Span(len(before), column + 1, max(1, length)), line

    def _line(self, number: int) -> str:
        return self.lines[number] if number < len(self.lines) else ""

    def _whole(self, mark: Mark) -> Span:
        line = mark.line
        if mark.style in ("|", ">") and mark.end_line > line:
            # The text of a block scalar begins below its indicator.
            below = next(
                (n for n in range(line + 1, mark.end_line + 1) if self._line(n).strip()), line
            )
            if below != line:
                text = self._line(below)
                start = len(text) - len(text.lstrip())
                return Span(below + 1, start + 1, max(1, len(text.strip())))
        end = mark.end_column if mark.end_line == line else len(self._line(line).rstrip())
        return Span(line + 1, mark.column + 1, max(1, end - mark.column))

    def _inside(self, mark: Mark, value: str, start: int, end: int) -> Span | None:
        lead = len(value) - len(value.lstrip())
        start, end = start + lead, max(end, start + 1) + lead
        if mark.style in ("|", ">"):
            return self._inside_block(mark, value, start, end)
        if mark.line != mark.end_line:
            return None
        written = self._line(mark.line)[mark.column : mark.end_column]
        columns = _columns(written, mark.style)
        if len(columns) != len(value) + 1:
            return None
        first = columns[min(start, len(value))]
        last = columns[min(end, len(value))]
        return Span(mark.line + 1, mark.column + first + 1, max(1, last - first))

    def _inside_block(self, mark: Mark, value: str, start: int, end: int) -> Span | None:
        parts = value.rstrip("\n").split("\n")
        if mark.style == ">" and len(parts) > 1:
            return None
        number = value.count("\n", 0, start)
        if number >= len(parts):
            number, start = len(parts) - 1, len(value.rstrip("\n"))
        begins = sum(len(part) + 1 for part in parts[:number])
        line = mark.line + 1 + number
        text = self._line(line)
        indent = len(text) - len(parts[number])
        if indent < 0 or text[indent:] != parts[number]:
            return None
        stop = min(end, begins + len(parts[number]))
        return Span(line + 1, indent + start - begins + 1, max(1, stop - start))


def _columns(written: str, style: str | None) -> list[int]:
    """For each character of a single-line scalar's value, and its end, the column it stands at."""
    if style is None:
        return list(range(len(written) + 1))
    stop = len(written) - 1
    columns = [character.start() for character in _QUOTED[style].finditer(written, 1, stop)]
    return [*columns, stop]
