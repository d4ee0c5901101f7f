"""Rules in YAML in one form, with their comments: keys in the order of the reference, two blanks of
indentation, items of lists below their key, no more than one empty line.

Words stay as they are written: quotes, numbers, styles of texts. The keys of a rule are moved as
lines, each with the comments above it; ruamel.yaml does the rest. What comes out is compared with
what went in, comments included.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

import yaml

from spark_cep.documents.reading import read_documents
from spark_cep.errors import Problem, RuleSetError, Span, SparkCepError, needs_extra

#: Of a rule; the first three are those of a file with test cases, whose `cases` come last, too.
_ORDER: Final = (
    "rules", "schemas", "event_time",
    "id", "version", "previous_version", "drain_limit", "description", "enabled", "mode",
    "effective_from", "events", "key", "pattern", "ververica", "java_classes", "sql", "within",
    "after_match", "emit", "limits", "cooldown", "cases",
)  # fmt: skip
_COMMENT: Final = re.compile(r"(?:^|(?<=\s))#.*")
_NEVER_FOLDED: Final = 2**31 - 1


def formatted(text: str, source: str) -> str:
    """The text in its one form. Raises RuleSetError where it is no YAML, or has a comment that
    would be lost."""
    before = read_documents(text, source)
    problems = [problem for each in before for problem in each.problems.values()]
    if problems:
        raise RuleSetError(problems)
    shown = _spaced(_emitted(_ordered(text)))
    lost = Counter(_comments(text)) - Counter(_comments(shown))
    if lost:
        raise RuleSetError([_lost(next(iter(lost)), text, source)])
    after = read_documents(shown, source)
    if [each.data for each in before] != [each.data for each in after]:
        raise SparkCepError(f"{source}: in its form it would say something else; please report it")
    return shown


def _comments(text: str) -> list[str]:
    return [found[0].rstrip() for line in text.splitlines() for found in [_COMMENT.search(line)]
            if found is not None]  # fmt: skip


def _lost(comment: str, text: str, source: str) -> Problem:
    lines = text.splitlines()
    number = next(n for n, line in enumerate(lines, 1) if comment in line)
    line = lines[number - 1]
    return Problem(
        "a comment inside of brackets or braces would be lost",
        source,
        Span(number, line.index(comment) + 1, len(comment)),
        line,
        allowed="the comment on a line of its own above, or one item a line, each with `- `",
    )


# The order of a rule's keys.


def _ordered(text: str) -> str:
    """The text with the keys of each document in order. A document with aliases stays as it is."""
    lines = text.splitlines()
    events: list[Any] = list(yaml.parse(text, Loader=yaml.SafeLoader))
    begins = [_marks(each)[0].line for each in events if isinstance(each, yaml.DocumentStartEvent)]
    nodes = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    if any(isinstance(each, yaml.AliasEvent) for each in events):
        return text
    made: list[str] = lines[: begins[0]] if begins else lines
    for node, (begin, end) in zip(nodes, pairwise([*begins, len(lines)]), strict=True):
        is_block = isinstance(node, yaml.MappingNode) and not node.flow_style and node.value
        made += _ordered_document(lines, node, begin, end) if is_block else lines[begin:end]
    return "\n".join(made) + "\n"


def _ordered_document(lines: Sequence[str], node: Any, begin: int, end: int) -> Iterator[str]:
    """Yield the lines from ``begin`` to ``end`` of a document that is a mapping."""
    first = node.value[0][0].start_mark.line
    yield from lines[begin:first]
    starts = [first]
    for (_, value), (key, _) in pairwise(node.value):
        start = key.start_mark.line
        while start > _end(value) and lines[start - 1].startswith("#"):
            start -= 1
        starts.append(start)
    footer = max(_end(node.value[-1][1]), starts[-1] + 1)
    # Comments behind the last key stay there.
    starts.append(footer)
    blocks = []
    for (key, _), (start, stop) in zip(node.value, pairwise(starts), strict=True):
        apart = start > first and not lines[start - 1].strip()
        place = _ORDER.index(key.value) if key.value in _ORDER else len(_ORDER)
        blocks.append((place, apart, _without_blank_end(lines[start:stop])))
    for number, (_, apart, block) in enumerate(sorted(blocks, key=lambda each: each[0])):
        if apart and number:
            yield ""
        yield from block
    yield from lines[footer:end]


def _end(value: Any) -> int:
    """The number of the line behind a value."""
    mark = value.end_mark
    return int(mark.line if mark.column == 0 else mark.line + 1)


def _without_blank_end(lines: Sequence[str]) -> list[str]:
    kept = list(lines)
    while kept and not kept[-1].strip():
        kept.pop()
    return kept


def _marks(event: Any) -> tuple[Any, Any]:
    """The beginning and the end of an event; PyYAML's types leave open that they are known."""
    return event.start_mark, event.end_mark


# Indentation and blanks.


def _emitted(text: str) -> str:
    """The text as ruamel.yaml writes it."""
    with needs_extra("fmt", "spark-cep fmt"):
        from ruamel.yaml import YAML
        from ruamel.yaml.resolver import BaseResolver

    class TextsOnly(BaseResolver):
        """Takes no word for a number, date or boolean, so that each is written as it was."""

        processing_version = (1, 2)

        def __init__(self, version: Any = None, loader: Any = None, loadumper: Any = None) -> None:
            super().__init__(loadumper if loader is None else loader)
            self.version = version

    form = YAML(typ="rt")
    form.Resolver = TextsOnly
    form.preserve_quotes = True
    form.width = _NEVER_FOLDED
    form.indent(mapping=2, sequence=4, offset=2)
    written = io.StringIO()
    form.dump_all(list(form.load_all(text)), written)
    return written.getvalue()


def _spaced(text: str) -> str:
    """The text with comments indented as what they stand above, and single empty lines."""
    lines = text.splitlines()
    inside = _inside_texts(text)
    made: list[str] = []
    indent = ""
    for number in range(len(lines) - 1, -1, -1):
        line = lines[number] if number in inside else lines[number].rstrip()
        if number in inside:
            made.append(line)
            continue
        if line.lstrip().startswith("#"):
            line = indent + line.lstrip()
        elif line and not line.startswith("---"):
            indent = line[: len(line) - len(line.lstrip())]
        if line or (made and made[-1]):
            made.append(line)
    made.reverse()
    return "\n".join(made).strip("\n") + "\n"


def _inside_texts(text: str) -> set[int]:
    """The numbers of the lines that belong to a text of several lines, but for its first."""
    found: set[int] = set()
    events: list[Any] = list(yaml.parse(text, Loader=yaml.SafeLoader))
    for event in events:
        if isinstance(event, yaml.ScalarEvent):
            start, end = _marks(event)
            found.update(range(start.line + 1, end.line + (end.column > 0)))
    return found
