"""Text that is not YAML: what is wrong, where, and the usual way out.

Conditions are SQL, and SQL has quotes, colons and brackets that YAML takes for its own. So the
commonest traps are explained in words of their own; what else the YAML parser says is passed on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial

import yaml

from spark_cep.documents.places import split_lines
from spark_cep.errors import Problem, Span

_ALLOWED = "a YAML or JSON document"
_IN_FLOW = (
    "inside `{…}` and `[…]`, quotes around text that has a comma, a colon or a bracket in it;"
    " or the keys on lines of their own"
)
_COMPLETE = (
    "quotes around the whole value: one that begins with a quote or a bracket ends where that is"
    " closed"
)
_NO_DASH = "an item of the list does not begin with `- `"
_NO_BLANK = "`-` needs a blank behind it"
_DASH = re.compile(r"\s*-[\w{]")
#: The first line of an item that is a mapping, up to its first key.
_FIRST_OF_ITEM = re.compile(r"(\s*)- +([\w.-]+):")
_ITEM = "`- ` at the beginning of each item of a list"
#: In braces: a key, and text without quotes up to where YAML ends it.
_FLOW_VALUE = re.compile(r"([^\s:,{}\[\]'\"]+): +([^\s'\"{}\[\],&*!|>%@`#][^{}\[\],]*)")
_KEY = re.compile(r"\s*([\w.-]+):")
_KEY_AND_VALUE = re.compile(r"\s*(?:- +)*([^\s:#'\"]+): +(\S.*)")


class LimitError(yaml.MarkedYAMLError):
    """The text is larger than what is read; ``note`` says what is allowed."""


@dataclass(frozen=True, slots=True)
class _SyntaxFault:
    """A syntax error and its place; line and column count from 0."""

    line: int
    column: int
    message: str
    allowed: str = _ALLOWED


def syntax_problem(
    error: yaml.YAMLError, text: str, source: str, lines: tuple[str, ...]
) -> Problem:
    """Return the YAML parser's error as a problem that underlines its place."""
    fault = _SyntaxFault(0, 0, str(error))
    if isinstance(error, yaml.MarkedYAMLError):
        fault = _marked(error, lines)
    elif isinstance(error, yaml.reader.ReaderError):
        before = split_lines(text[: int(error.position)])
        character = ord(text[int(error.position)])
        message = f"the character U+{character:04X} is not allowed in YAML"
        fault = _SyntaxFault(len(before) - 1, len(before[-1]), message)
    # YAML may blame the place behind the end of the text.
    line = min(fault.line, len(lines) - 1)
    span = Span(line + 1, min(fault.column, len(lines[line])) + 1)
    return Problem(fault.message, source, span, lines[line], allowed=fault.allowed)


def _marked(error: yaml.MarkedYAMLError, lines: tuple[str, ...]) -> _SyntaxFault:
    context, problem = error.context or "", error.problem or ""
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line, mark.column) if mark is not None else (0, 0)
    fault = partial(_SyntaxFault, line, column)
    if isinstance(error, LimitError):
        return fault(problem, str(error.note))
    known = _known(error, lines) or _of_list(error, lines)
    if known is not None:
        return known
    if "cannot start any token" in problem:
        sign = lines[line][column : column + 1]
        if sign == "\t":
            return fault("a tab indents this line", "spaces")
        return fault(f"a value cannot begin with {sign!r}", "quotes around the whole value")
    if problem.startswith("found undefined alias"):
        message = "`*` begins an alias, and nothing has an anchor of that name"
        return fault(message, "quotes around the whole value; or `&` and the name")
    if problem == "expected <block end>, but found '<scalar>'":
        return fault("text follows a value that is complete", _COMPLETE)
    in_flow = context.startswith("while parsing a flow") and "<stream end>" not in problem
    cut = _cut_short(lines, line, column) if in_flow else None
    message = ", ".join(filter(None, (context, problem)))
    return cut or fault(message, _IN_FLOW if in_flow else _ALLOWED)


def _known(error: yaml.MarkedYAMLError, lines: tuple[str, ...]) -> _SyntaxFault | None:
    """Return the fault of a quote that is open, or of a colon too few or too many."""
    began, mark = error.context_mark, error.problem_mark
    if error.context == "while scanning a quoted scalar" and began is not None:
        allowed = "the same quote at the end of the text"
        open_quote = _SyntaxFault(
            began.line, began.column, "the quote that opens here is not closed", allowed
        )
        return _cut_short(lines, began.line, began.column) or open_quote
    if error.problem == "mapping values are not allowed here" and mark is not None:
        dash = _DASH.match(lines[mark.line - 1]) if mark.line else None
        if dash is not None:
            return _SyntaxFault(mark.line - 1, dash.end() - 2, _NO_BLANK, _ITEM)
        return _SyntaxFault(mark.line, mark.column, *_second_colon(lines[mark.line], mark.column))
    if error.problem == "could not find expected ':'" and began is not None:
        is_item = lines[began.line][began.column : began.column + 1] in ("{", "[")
        if is_item:
            return _SyntaxFault(began.line, began.column, _NO_DASH, _ITEM)
        message = "`:` is missing after this key"
        return _SyntaxFault(began.line, began.column, message, "`key: value`")
    return None


def _of_list(error: yaml.MarkedYAMLError, lines: tuple[str, ...]) -> _SyntaxFault | None:
    """Return the fault of an item without ``- ``."""
    problem, mark = error.problem or "", error.problem_mark
    if mark is None or not problem.startswith("expected <block end>, but found "):
        return None
    if error.context == "while parsing a block collection":
        return _beside_item(error.context_mark, mark, lines) or _SyntaxFault(
            mark.line, mark.column, _NO_DASH, _example(lines[mark.line])
        )
    if problem.endswith(("'-'", "'<block sequence start>'")):
        message = "`- ` begins an item of a list whose first item has none"
        return _SyntaxFault(mark.line, mark.column, message, _ITEM)
    return None


def _beside_item(
    began: yaml.Mark | None, mark: yaml.Mark, lines: tuple[str, ...]
) -> _SyntaxFault | None:
    """Return the fault of a key that is indented less than those of the item above. The first key
    of that item, in the dash's column, begins another item instead."""
    key = _KEY.match(lines[mark.line])
    if began is None or key is None:
        return None
    found = filter(None, map(_FIRST_OF_ITEM.match, lines[began.line : mark.line]))
    items = [item for item in found if len(item[1]) == began.column]
    if not items or (mark.column == began.column and items[-1][2] == key[1]):
        return None
    message = "this key is indented less than those of the item above"
    allowed = f"{items[-1].start(2)} blanks before it, or `- ` where it begins another item"
    return _SyntaxFault(mark.line, mark.column, message, allowed)


def _cut_short(lines: tuple[str, ...], number: int, column: int) -> _SyntaxFault | None:
    """Return the fault of text in braces, without quotes, that a sign of YAML's cuts short before
    ``column``: what is left of it has a quote or bracket that is open, or it ends at a bracket."""
    line = lines[number] if number < len(lines) else ""
    found = [match for match in _FLOW_VALUE.finditer(line) if match.end() <= column]
    if not found or found[-1].end() >= len(line):
        return None
    key, text = found[-1].groups()
    sign = line[found[-1].end()]
    is_open = text.count("(") > text.count(")") or any(text.count(q) % 2 for q in "'\"")
    if not is_open and sign not in "[{":
        return None
    # The value itself is not repeated: it may be a secret of the settings.
    message = f"text with `{sign}` in it needs quotes inside `{{…}}` and `[…]`"
    allowed = f'quotes around the whole value: `{key}: "…"`'
    return _SyntaxFault(number, found[-1].end(), message, allowed)


def _example(line: str) -> str:
    key = _KEY.match(line)
    return _ITEM if key is None else f"{_ITEM}: `- {key[1]}: …`"


def _second_colon(line: str, column: int) -> tuple[str, str]:
    match = _KEY_AND_VALUE.fullmatch(line.rstrip())
    if match is None or column < match.start(2):
        message = "a key cannot stand here: the value above has begun already"
        return message, "the same indentation for all keys of a mapping"
    # The value itself is not repeated: it may be a secret of the settings.
    return "text with `: ` in it needs quotes", f'quotes around the whole value: `{match[1]}: "…"`'
