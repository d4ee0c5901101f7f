"""Reads YAML or JSON text into plain data, remembering where each key and value stands.

The meaning is that of ``yaml.safe_load``: no tag can make anything but text, numbers, booleans,
timestamps, lists and mappings. What safe loading lets through is refused here: a key given twice,
a key without a value, text that is not valid Unicode, and input that grows without bound. Size,
number of nodes (each use of an alias counts again) and depth are limited, and the limit stands in
the error.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import yaml

from service.errors import Problem, Span
from service.pattern.places import Mark, Path, RulePlaces, split_lines

MOST_CHARACTERS = 1_000_000
MOST_NODES = 50_000
MOST_DEPTH = 50

_MERGE = "tag:yaml.org,2002:merge"
_NULL = "tag:yaml.org,2002:null"
_SCALARS = frozenset(
    f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "timestamp")
)
_SEQUENCE = "tag:yaml.org,2002:seq"
_MAPPING = "tag:yaml.org,2002:map"


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """One document of a text: its data, the places in it, and what is wrong with it so far."""

    data: object
    places: RulePlaces
    problems: tuple[Problem, ...]


class _LimitError(yaml.MarkedYAMLError):
    """The text is larger than what is read."""


class _Loader(yaml.SafeLoader):
    """A safe loader that composes no more than ``MOST_NODES`` nodes and ``MOST_DEPTH`` levels."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._nodes = 0
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self._nodes += 1
        self._depth += 1
        if self._nodes > MOST_NODES or self._depth > MOST_DEPTH:
            raise _LimitError(problem=_too_large(self._depth), problem_mark=self.get_mark())
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


def read_documents(text: str, source: str) -> list[SourceDocument]:
    """The documents of ``text``; empty ones are passed over.

    What cannot be read at all is a document without data whose problems say why.
    """
    lines = split_lines(text)
    nowhere = RulePlaces(source, lines)
    if len(text) > MOST_CHARACTERS:
        message = f"the text has {len(text):,} characters"
        allowed = f"at most {MOST_CHARACTERS:,} characters in one file"
        problem = nowhere.problem(message, (), allowed=allowed)
        return [SourceDocument(None, nowhere, (problem,))]
    documents = []
    nodes = 0
    try:
        for node in _compose(_without_tabs(text)):
            reader = _Reader(source, lines, nodes)
            data = reader.read(node, (), 1)
            nodes = reader.nodes
            if data is not None or reader.problems:
                places = RulePlaces(source, lines, reader.keys, reader.values)
                documents.append(SourceDocument(data, places, tuple(reader.problems)))
    except yaml.YAMLError as error:
        documents.append(SourceDocument(None, nowhere, (_unreadable(error, text, source, lines),)))
    return documents


def _compose(text: str) -> Iterator[yaml.Node]:
    loader = _Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            if node is not None:
                yield node
    finally:
        loader.dispose()


def _without_tabs(text: str) -> str:
    # JSON may be indented by tabs, which YAML refuses. In valid JSON a raw tab is never content.
    if "\t" not in text or text.lstrip("\ufeff \t\r\n")[:1] not in ("{", "["):
        return text
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text
    return text.replace("\t", " ")


def _too_large(depth: int) -> str:
    if depth > MOST_DEPTH:
        return f"the document is more than {MOST_DEPTH} levels deep"
    return f"the document has more than {MOST_NODES:,} nodes, uses of aliases counted"


def _unreadable(error: yaml.YAMLError, text: str, source: str, lines: tuple[str, ...]) -> Problem:
    allowed = "a YAML or JSON document"
    line, column, message = 0, 0, str(error)
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line, mark.column) if mark is not None else (0, 0)
        message = ", ".join(part for part in (error.context, error.problem) if part)
        if isinstance(error, _LimitError):
            allowed = f"at most {MOST_DEPTH} levels and {MOST_NODES:,} nodes"
    elif isinstance(error, yaml.reader.ReaderError):
        before = split_lines(text[: int(error.position)])
        line, column = len(before) - 1, len(before[-1])
        message = f"the character U+{ord(text[int(error.position)]):04X} is not allowed in YAML"
    # YAML may blame the place behind the end of the text.
    line = min(line, len(lines) - 1)
    column = min(column, len(lines[line]))
    return Problem(
        message=message,
        source=source,
        span=Span(line + 1, column + 1),
        excerpt=lines[line],
        allowed=allowed,
    )


@dataclass(slots=True)
class _Reader:
    """Turns one document's nodes into data and notes their places."""

    source: str
    lines: tuple[str, ...]
    nodes: int = 0
    keys: dict[Path, Mark] = field(default_factory=dict)
    values: dict[Path, Mark] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    constructor: yaml.constructor.SafeConstructor = field(
        default_factory=yaml.constructor.SafeConstructor
    )

    def read(self, node: yaml.Node, path: Path, depth: int) -> object:
        self._count(node, depth)
        self.values[path] = _mark(node)
        if isinstance(node, yaml.ScalarNode) and node.tag in _SCALARS:
            return self._scalar(node, path)
        if isinstance(node, yaml.SequenceNode) and node.tag == _SEQUENCE:
            return [self.read(item, (*path, n), depth + 1) for n, item in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode) and node.tag == _MAPPING:
            return self._mapping(node, path, depth)
        self._refuse(f"the tag `{node.tag}` is not allowed", path, "values without a tag")
        return None

    def _scalar(self, node: yaml.ScalarNode, path: Path) -> object:
        try:
            value: object = self.constructor.construct_object(node)
        except (ValueError, OverflowError):
            kind = node.tag.rpartition(":")[2]
            allowed = f"a valid {kind}; or text in quotes"
            self._refuse(f"`{node.value}` is no valid {kind}", path, allowed)
            return None
        if isinstance(value, str):
            try:
                # JSON writes characters beyond U+FFFF as two escapes.
                joined = value.encode("utf-16", "surrogatepass").decode("utf-16")
            except UnicodeDecodeError:
                self._refuse("the text is not valid Unicode", path, "no half of a surrogate pair")
            else:
                self.values[path] = replace(self.values[path], value=joined)
                return joined
        return value

    def _mapping(self, node: yaml.MappingNode, path: Path, depth: int) -> dict[str, object]:
        data: dict[str, object] = {}
        merges: list[yaml.Node] = []
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                merges.append(value_node)
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                self.keys[(*path, "?")] = _mark(key_node)
                self._refuse("a key must be text", (*path, "?"), "text as key")
                continue
            here = (*path, key_node.value)
            if key_node.value in data:
                first = self.keys[here].line + 1
                self.keys[here] = _mark(key_node)
                message = f"the key `{key_node.value}` is given twice, first in line {first}"
                self._refuse(message, here, "each key once")
                continue
            self._entry(data, key_node, value_node, path, depth)
        for merge in merges:
            self._merge(data, merge, path, depth)
        return data

    def _entry(
        self,
        data: dict[str, object],
        key_node: yaml.ScalarNode,
        value_node: yaml.Node,
        path: Path,
        depth: int,
    ) -> None:
        here = (*path, key_node.value)
        self.keys[here] = _mark(key_node)
        data[key_node.value] = self.read(value_node, here, depth + 1)
        if data[key_node.value] is None and value_node.tag == _NULL:
            message = f"`{key_node.value}` has no value"
            self._refuse(message, here, "a value; or leave the key out")

    def _merge(self, data: dict[str, object], node: yaml.Node, path: Path, depth: int) -> None:
        """Add what ``<<`` brings in and the mapping does not say itself; the first one holds."""
        for part in node.value if isinstance(node, yaml.SequenceNode) else [node]:
            if not isinstance(part, yaml.MappingNode):
                self.keys[(*path, "<<")] = _mark(part)
                self._refuse("`<<` must name a mapping", (*path, "<<"), "an alias of a mapping")
                continue
            for key_node, value_node in part.value:
                self._count(key_node, depth)
                if key_node.tag == _MERGE:
                    self._merge(data, value_node, path, depth + 1)
                elif isinstance(key_node, yaml.ScalarNode) and key_node.value not in data:
                    self._entry(data, key_node, value_node, path, depth)

    def _count(self, node: yaml.Node, depth: int) -> None:
        self.nodes += 1
        if self.nodes > MOST_NODES or depth > MOST_DEPTH:
            raise _LimitError(problem=_too_large(depth), problem_mark=node.start_mark)

    def _refuse(self, message: str, path: Path, allowed: str) -> None:
        places = RulePlaces(self.source, self.lines, self.keys, self.values)
        self.problems.append(places.problem(message, path, allowed=allowed, at="key"))


def _mark(node: yaml.Node) -> Mark:
    start, end = node.start_mark, node.end_mark
    mark = Mark(start.line, start.column, end.line, end.column)
    if isinstance(node, yaml.ScalarNode):
        return replace(mark, value=node.value, style=node.style)
    return mark
