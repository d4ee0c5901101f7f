"""The place of a position in a document of YAML or JSON, which need not be complete.

YAML's own scanner reads the text up to the position, with a mark put in there; where the text
breaks off (an open quote, a key without its colon), what is missing is written behind the mark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import yaml

from spark_cep.documents.places import Path
from spark_cep.documents.reading import MOST_CHARACTERS

#: Private characters of Unicode, of which texts hardly have any.
_MARKS: Final = "\ue0c5\ue0c6\uf3c5"
#: What may be missing behind the mark, and begins a text that is not broken off.
_MISSING: Final = ("", ":", "'", '"')
_DOCUMENT: Final = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_MOST_DEPTH: Final = 200


@dataclass(frozen=True, slots=True)
class Cursor:
    """A scalar that a position is in.

    Args:
        path: The path of the value; of the mapping around, where the scalar is a key.
        is_key: Whether the scalar is a key.
        may_be_key: Whether it is one, or may become one with a colon behind it.
        text: The scalar.
        offset: The number of its characters before the position.
        values: The scalars before it, by path.
        keys: The keys before it in the mapping around.
    """

    path: Path
    is_key: bool
    may_be_key: bool
    text: str
    offset: int
    values: Mapping[Path, str]
    keys: tuple[str, ...]

    @property
    def word(self) -> str:
        """The characters of the scalar before the position."""
        return self.text[: self.offset]


def cursor_at(text: str, offset: int) -> Cursor | None:
    """The place behind so many characters of a text; ``None`` where it is in no value, as in a
    comment, or the text is not YAML up to there."""
    if len(text) > MOST_CHARACTERS:
        return None
    mark = next((each for each in _MARKS if each not in text), None)
    if mark is None:
        return None
    begins = max((found.start() for found in _DOCUMENT.finditer(text, 0, offset)), default=0)
    before, behind = text[begins:offset], text[offset:]
    if before.lstrip("\ufeff \t\r\n")[:1] in ("{", "["):
        before, behind = before.replace("\t", " "), behind.replace("\t", " ")
    following = _DOCUMENT.search(behind)
    whole = before + mark + (behind if following is None else behind[: following.start()])
    for tried in (whole, *(before + mark + missing for missing in _MISSING)):
        found = _found(tried, mark)
        if found is not None:
            return found
    return None


@dataclass(slots=True)
class _Around:
    """A mapping or list that is open."""

    is_list: bool
    indented: bool = True
    number: int = -1
    key: str | None = None
    in_value: bool = False
    keys: list[str] = field(default_factory=list)


def _found(text: str, mark: str) -> Cursor | None:
    """The scalar with the mark; ``None`` where there is none, or the text breaks off before it."""
    open_: list[_Around] = []
    values: dict[Path, str] = {}
    try:
        for token in yaml.scan(text):
            if isinstance(token, yaml.ScalarToken):
                path = tuple(_path(open_))
                around = open_[-1] if open_ else None
                is_key = around is not None and not around.is_list and not around.in_value
                if mark in token.value:
                    return _cursor(token, mark, path, is_key, around, values)
                if is_key and around is not None:
                    around.key = token.value
                    around.keys.append(token.value)
                else:
                    values[path] = token.value
            elif not _step(open_, token):
                return None
    except yaml.YAMLError:
        return None
    return None


def _cursor(
    token: yaml.ScalarToken,
    mark: str,
    path: Path,
    is_key: bool,
    around: _Around | None,
    values: Mapping[Path, str],
) -> Cursor:
    offset = token.value.index(mark)
    text = token.value.replace(mark, "")
    one_line = token.start_mark.line == token.end_mark.line and token.style not in ("|", ">")
    keys = tuple(around.keys) if is_key and around is not None else ()
    # A value in the line of its key is no mapping.
    new = one_line and (around is None or around.is_list or _begins_line(token))
    return Cursor(path, is_key, is_key or new, text, offset, values, keys)


def _begins_line(token: yaml.ScalarToken) -> bool:
    buffer = token.start_mark.buffer
    if buffer is None:
        return False
    begins = token.start_mark.pointer - token.start_mark.column
    return not buffer[begins : token.start_mark.pointer].strip(" -")


def _path(open_: list[_Around]) -> Iterator[str | int]:
    for around in open_:
        if around.is_list:
            yield max(around.number, 0)
        elif around.in_value and around.key is not None:
            yield around.key


def _step(open_: list[_Around], token: yaml.Token) -> bool:
    """Follow a token that is no scalar; ``False`` where a document is too deep."""
    top = open_[-1] if open_ else None
    match token:
        case yaml.BlockMappingStartToken() | yaml.FlowMappingStartToken():
            open_.append(_Around(is_list=False))
        case yaml.BlockSequenceStartToken():
            open_.append(_Around(is_list=True))
        case yaml.FlowSequenceStartToken():
            open_.append(_Around(is_list=True, number=0))
        case yaml.BlockEntryToken():
            if top is None or not top.is_list:
                # A list that is not indented.
                top = _Around(is_list=True, indented=False)
                open_.append(top)
            top.number += 1
        case yaml.BlockEndToken() | yaml.FlowMappingEndToken() | yaml.FlowSequenceEndToken():
            _close(open_)
            del open_[-1:]
        case yaml.KeyToken():
            _close(open_)
    if open_ and isinstance(token, yaml.FlowEntryToken):
        open_[-1].number += 1
    if open_ and isinstance(token, (yaml.FlowEntryToken, yaml.KeyToken, yaml.ValueToken)):
        open_[-1].in_value = isinstance(token, yaml.ValueToken)
    return len(open_) <= _MOST_DEPTH


def _close(open_: list[_Around]) -> None:
    """Close a list that is not indented, and so has no end of its own."""
    if open_ and not open_[-1].indented:
        open_.pop()
