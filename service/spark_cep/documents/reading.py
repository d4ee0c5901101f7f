"""Reads YAML or JSON text into plain data, remembering where each key and value stands.

The meaning is that of ``yaml.safe_load``: no tag can make anything but text, numbers, booleans,
timestamps, lists and mappings. What safe loading lets through is refused here: a key given twice,
text that is not valid Unicode, and input that grows without bound. Characters and nodes (each use
of an alias counts again), depth and digits are limited, and the limit stands in the error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

import yaml

from spark_cep.documents.places import Mark, Path, Places, split_lines
from spark_cep.documents.syntax_errors import LimitError, syntax_problem
from spark_cep.errors import MOST_PROBLEMS, Problem

MOST_CHARACTERS = 1_000_000
MOST_NODES = 50_000
MOST_DEPTH = 50
#: A number of more is text, or a mistake: Python writes no whole number of over 4,300 digits.
MOST_OF_NUMBER = 1_000

UNREADABLE: Final = object()
"""Stands for the data of a text that is not YAML."""

_MERGE = "tag:yaml.org,2002:merge"
_SCALARS = frozenset(
    f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "timestamp")
)
_SEQUENCE = "tag:yaml.org,2002:seq"
_MAPPING = "tag:yaml.org,2002:map"


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a text: its data, the places in it, and what is wrong with it so far, by
    path. Data that cannot be read at all is ``UNREADABLE``."""

    data: object
    places: Places
    problems: Mapping[Path, Problem] = field(default_factory=lambda: MappingProxyType({}))


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
            raise _too_large(self._depth, 0, self.get_mark())
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


def read_documents(
    text: str,
    source: str,
    root: Path = (),
    is_text: Callable[[Path, str], bool] = lambda _path, _kind: False,
) -> list[Document]:
    """The documents of ``text``; empty ones are passed over.

    Args:
        text: YAML or JSON.
        source: What problems call the text.
        root: The path of the whole.
        is_text: Whether the scalar at a path is text, whatever YAML takes it for (``bool``,
            ``int``, ``float``, ``timestamp``).
    """
    lines = split_lines(text)
    nowhere = Places(source, lines)
    if len(text) > MOST_CHARACTERS:
        message = f"the text has {len(text):,} characters"
        allowed = f"at most {MOST_CHARACTERS:,} characters in one file"
        return [_unreadable(nowhere, nowhere.problem(message, (), allowed=allowed), root)]
    documents = []
    nodes = characters = 0
    try:
        for node in _compose(_without_tabs(text)):
            reader = _Reader(source, lines, is_text, nodes, characters)
            data = reader.read(node, root, 1)
            nodes, characters = reader.nodes, reader.characters
            if data is not None or reader.problems:
                places = Places(source, lines, reader.keys, reader.values)
                documents.append(Document(data, places, reader.problems))
    except yaml.YAMLError as error:
        documents.append(_unreadable(nowhere, syntax_problem(error, text, source, lines), root))
    return documents


def _unreadable(places: Places, problem: Problem, root: Path) -> Document:
    return Document(UNREADABLE, places, {root: problem})


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


def _too_large(depth: int, characters: int, mark: yaml.Mark) -> LimitError:
    message = f"the document has more than {MOST_NODES:,} nodes, uses of aliases counted"
    if depth > MOST_DEPTH:
        message = f"the document is more than {MOST_DEPTH} levels deep"
    elif characters > MOST_CHARACTERS:
        message = f"the document has more than {MOST_CHARACTERS:,} characters once each alias is"
        message += " written out"
    allowed = (
        f"at most {MOST_DEPTH} levels, {MOST_NODES:,} nodes and {MOST_CHARACTERS:,} characters"
    )
    return LimitError(problem=message, problem_mark=mark, note=allowed)


@dataclass(slots=True)
class _Reader:
    """Turns one document's nodes into data and notes their places."""

    source: str
    lines: tuple[str, ...]
    is_text: Callable[[Path, str], bool]
    nodes: int = 0
    characters: int = 0
    keys: dict[Path, Mark] = field(default_factory=dict)
    values: dict[Path, Mark] = field(default_factory=dict)
    problems: dict[Path, Problem] = field(default_factory=dict)
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
        # Not quoted: in settings it may be the beginning of a secret.
        self._refuse("this tag is not allowed", path, "values without a tag; or text in quotes")
        return None

    def _scalar(self, node: yaml.ScalarNode, path: Path) -> object:
        kind = node.tag.rpartition(":")[2]
        if kind not in ("str", "null") and self.is_text(path, kind):
            return str(node.value)
        if kind in ("int", "float") and len(node.value) > MOST_OF_NUMBER:
            allowed = f"at most {MOST_OF_NUMBER:,}; or text in quotes"
            self._refuse(f"this number has {len(node.value):,} characters", path, allowed)
            return None
        try:
            value: object = self.constructor.construct_object(node)
        except (ValueError, OverflowError):
            allowed = f"a valid {kind}; or text in quotes"
            self._refuse(f"this is not a valid {kind}", path, allowed)
            return None
        if not isinstance(value, str):
            return value
        joined = _joined(value)
        if joined is None:
            self._refuse("the text is not valid Unicode", path, "no half of a surrogate pair")
            return value
        self.values[path] = replace(self.values[path], value=joined)
        return joined

    def _mapping(self, node: yaml.MappingNode, path: Path, depth: int) -> dict[str, object]:
        data: dict[str, object] = {}
        merges: list[yaml.Node] = []
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                merges.append(value_node)
                continue
            self._count_text(key_node, depth)
            name = _joined(key_node.value) if isinstance(key_node, yaml.ScalarNode) else None
            if name is None:
                self.keys[(*path, "?")] = _mark(key_node)
                self._refuse("a key must be text", (*path, "?"), "text as key")
            elif name in data:
                here = (*path, name)
                first = self.keys[here].line + 1
                self.keys[here] = _mark(key_node)
                message = f"the key `{name}` is given twice, first in line {first}"
                allowed = "each key once"
                if path and isinstance(path[-1], int):
                    allowed += f"; `- ` begins the next item of the list: `- {name}: …`"
                self._refuse(message, here, allowed)
            else:
                self._entry(data, name, key_node, value_node, path, depth)
        for merge in merges:
            self._merge(data, merge, path, depth)
        return data

    def _entry(
        self,
        data: dict[str, object],
        name: str,
        key_node: yaml.Node,
        value_node: yaml.Node,
        path: Path,
        depth: int,
    ) -> None:
        self.keys[(*path, name)] = _mark(key_node)
        data[name] = self.read(value_node, (*path, name), depth + 1)

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
                    self._entry(data, key_node.value, key_node, value_node, path, depth)

    def _count(self, node: yaml.Node, depth: int) -> None:
        self.nodes += 1
        self._count_text(node, depth)
        if self.nodes > MOST_NODES or depth > MOST_DEPTH:
            raise _too_large(depth, 0, node.start_mark)

    def _count_text(self, node: yaml.Node, depth: int) -> None:
        if isinstance(node, yaml.ScalarNode):
            self.characters += len(node.value)
            if self.characters > MOST_CHARACTERS:
                raise _too_large(depth, self.characters, node.start_mark)

    def _refuse(self, message: str, path: Path, allowed: str) -> None:
        if len(self.problems) >= MOST_PROBLEMS:
            return
        places = Places(self.source, self.lines, self.keys, self.values)
        self.problems[path] = places.problem(message, path, allowed=allowed, at="key")


def _joined(text: str) -> str | None:
    """The text with halves of surrogate pairs joined; JSON writes characters beyond U+FFFF as two
    escapes. ``None`` where a half has no other."""
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        return None


def _mark(node: yaml.Node) -> Mark:
    start, end = node.start_mark, node.end_mark
    mark = Mark(start.line, start.column, end.line, end.column)
    if isinstance(node, yaml.ScalarNode):
        return replace(mark, value=node.value, style=node.style)
    return mark
