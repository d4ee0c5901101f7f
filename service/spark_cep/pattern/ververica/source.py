"""The JSON of a pattern where it stands: its places, and its problems by their paths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Literal

from spark_cep.documents.places import Mark, Path, Places, split_lines
from spark_cep.documents.reading import UNREADABLE, read_documents
from spark_cep.errors import MOST_PROBLEMS, Problem, Span
from spark_cep.pattern.ververica.format import FIELD, written


class GraphSource:
    """The JSON, the places in it (below ``ververica``, or inside its text), and what is wrong with
    it."""

    def __init__(self, given: object, places: Places) -> None:
        self.problems: list[Problem] = []
        self.graph = given
        self._places = places
        self._inside: Places | None = None
        if isinstance(given, str):
            self._read_text(given)

    def _read_text(self, text: str) -> None:
        documents = read_documents(text, self._places.source)
        if len(documents) != 1:
            message = f"`{FIELD}` has {len(documents)} patterns"
            self.problems.append(self._places.problem(message, (FIELD,), allowed="one in JSON"))
            return
        (document,) = documents
        self.graph, self._inside = document.data, document.places
        for path, problem in document.problems.items():
            offsets = self._offsets(problem.span) if problem.span is not None else None
            message = f"`{FIELD}`: {problem.message}"
            if document.data is not UNREADABLE:
                message = f"`{written(path)}`: {problem.message}"
            allowed = problem.allowed
            self.problems.append(
                self._places.problem(message, (FIELD,), allowed=allowed, offsets=offsets)
            )

    def refuse(
        self,
        path: Path,
        message: str,
        allowed: str | None = None,
        offsets: tuple[int, int] | None = None,
        at: Literal["key", "value"] = "value",
    ) -> None:
        """Note what is wrong at ``path``; ``offsets`` are characters inside its text."""
        if len(self.problems) >= MOST_PROBLEMS:
            return
        named = f"`{written(path)}`"
        message = message if named in message else f"{named}: {message}"
        below = (FIELD, *path)
        if self._inside is not None:
            offsets = self._offsets(self._inside.span(path, at=at, offsets=offsets))
            below, at = (FIELD,), "value"
        problem = self._places.problem(message, below, allowed=allowed, at=at, offsets=offsets)
        self.problems.append(problem)

    def places_of(self, origins: Mapping[Path, Path]) -> Places:
        """The places of the ordinary document: a part stands where its origin does."""
        named = MappingProxyType({path: written(origin) for path, origin in origins.items()})
        if not self._places.is_text:
            return replace(self._places, origins=named)
        marks = {path: self._mark(origin) for path, origin in origins.items()}
        pattern = self._places.span((FIELD,))
        marks.setdefault(("pattern",), _mark_of(pattern))
        return replace(
            self._places,
            keys=MappingProxyType({**self._places.keys, **marks}),
            values=MappingProxyType({**self._places.values, **marks}),
            origins=named,
        )

    def _mark(self, origin: Path) -> Mark:
        if self._inside is None:
            return _mark_of(self._places.span((FIELD, *origin)))
        offsets = self._offsets(self._inside.span(origin))
        return _mark_of(self._places.span((FIELD,), offsets=offsets))

    def _offsets(self, span: Span) -> tuple[int, int]:
        """Return the beginning and end of a span of the inner text, in the document's own
        counting."""
        assert self._inside is not None
        text = "\n".join(self._inside.lines)
        before = sum(len(line) + 1 for line in split_lines(text)[: span.line - 1])
        start = before + span.column - 1 - (len(text) - len(text.lstrip()))
        return start, start + span.length


def _mark_of(span: Span) -> Mark:
    line, column = span.line - 1, span.column - 1
    return Mark(line, column, line, column + span.length)
