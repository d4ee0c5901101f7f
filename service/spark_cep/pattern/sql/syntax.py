"""Text to statement: Lark parses by ``grammar.lark``; its tree becomes the statement's own.

Lark's LALR parser takes linear time and does not recurse; what it is given is bounded:
``MAX_TEXT`` characters, ``MAX_NESTING`` open brackets. A single thing that is not expected is
skipped, so that the mistakes behind it are reported too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from importlib.resources import files
from typing import Any

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from lark.tree import Meta

from spark_cep.pattern.expressions.canonical import name as canonical_name
from spark_cep.pattern.expressions.problems import TextProblem
from spark_cep.pattern.sql.around import around_clause, parts_out_of_order
from spark_cep.pattern.sql.row_pattern import (
    Alternation,
    Anchor,
    Concatenation,
    Empty,
    Exclusion,
    PatternVariable,
    Permutation,
    Quantified,
    RowPattern,
    Span,
)
from spark_cep.pattern.sql.slips import slip
from spark_cep.pattern.sql.statement import (
    Define,
    Fragment,
    Named,
    ResultOrder,
    RowsOf,
    RowsPerMatch,
    Selected,
    SkipClause,
    SkipTo,
    SortItem,
    Statement,
    Subset,
    WrittenMeasure,
)

MAX_TEXT = 50_000
MAX_NESTING = 64
_MOST_SYNTAX_ERRORS = 20
_MOST_EXPECTED = 8
_MOST_DIGITS = 9
# What is not closed reaches to the end of the text, so that this takes linear time.
_NOT_CODE = re.compile(
    r"(?P<string>'(?:[^'\\]|\\.|'')*(?:'|\Z))"
    r'|(?P<quoted>"(?:[^"]|"")*(?:"|\Z)|`(?:[^`]|``)*(?:`|\Z))'
    r"|(?P<comment>--[^\n]*|/\*(?!\+)(?:[^*]|\*(?!/))*(?:\*/)?)",
    re.DOTALL,
)
_TERMINALS = {
    "WORD": "a name",
    "QUOTED": "a name",
    "NUMBER": "an expression",
    "STRING": "an expression",
    "TYPOGRAPHIC": "an expression",
    "SIGN": "an expression",
    "DISTINCT_FROM": "an expression",
    "COUNT": "a whole number",
    "RELUCTANT": "?",
    "$END": "the end",
}


def read_statement(text: str, source: str) -> tuple[Statement | None, list[TextProblem]]:
    """The statement as far as it can be read, and what breaks the grammar; ``source`` names the
    text in messages."""
    too_much = _beyond_limits(text)
    if too_much is not None:
        return None, [too_much]
    code = _NOT_CODE.sub(_placeholder, text)
    misplaced = parts_out_of_order(code)
    if misplaced is not None:
        return None, [misplaced]
    within, problems = around_clause(text, code)

    def skip(error: UnexpectedInput) -> bool:
        if _at_end(error):
            if not problems:
                problems.append(_syntax_error(within, error))
            return False
        known = slip(code, error.pos_in_stream or 0)
        if known is not None:
            # What follows would be read as what it is not.
            problems.append(known)
            return False
        new = _syntax_error(within, error)
        if problems and not within[problems[-1].span[1] : new.span[0]].strip():
            # More than one thing too many: what follows would be read as what it is not.
            return False
        problems.append(new)
        return len(problems) < _MOST_SYNTAX_ERRORS

    try:
        tree = _parser().parse(within, on_error=skip)
    except UnexpectedInput:
        return None, sorted(problems, key=lambda problem: problem.span)
    reader = _StatementReader(text, source)
    statement: Statement = reader.transform(tree)
    # Without its variables, whatever names them would be reported as wrong.
    return None if reader.lacks_variables else statement, problems + reader.problems


def _placeholder(part: re.Match[str]) -> str:
    return ("_" if part["quoted"] else " ") * len(part[0])


def plain_text(text: str) -> str:
    """The statement without comments, blanks at ends of lines, empty lines and the semicolon. What
    stands in quotes is left as it is."""
    code = _NOT_CODE.sub(lambda part: " " if part["comment"] else part[0], text)
    parts: list[str] = []
    at = 0
    for quoted in _NOT_CODE.finditer(code):
        parts += [_plain_code(code[at : quoted.start()]), quoted[0]]
        at = quoted.end()
    parts.append(_plain_code(code[at:]))
    return "".join(parts).strip().removesuffix(";").rstrip()


def _plain_code(code: str) -> str:
    first, *others = re.sub(r"[^\S\n]", " ", code).split("\n")
    if not others:
        return first
    lines = [first.rstrip(" "), *(line.rstrip(" ") for line in others[:-1] if line.strip(" "))]
    return "\n".join([*lines, others[-1]])


def quoted_name(name: str) -> str:
    """A name as a statement has it: in backticks, where it cannot stand without."""
    quoted = canonical_name((name,)) != name or name.upper() in _keywords()
    return f"`{name.replace('`', '``')}`" if quoted else name


@cache
def _keywords() -> frozenset[str]:
    values = (terminal.pattern.value for terminal in _parser().terminals)
    return frozenset(value for value in values if value.isupper())


@cache
def _parser() -> Lark:
    grammar = files(__package__).joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", propagate_positions=True)


def _beyond_limits(text: str) -> TextProblem | None:
    if len(text) > MAX_TEXT:
        message = f"the statement has {len(text)} characters; the limit is {MAX_TEXT}"
        return TextProblem(message, (0, 0))
    depth = 0
    for place, sign in enumerate(_NOT_CODE.sub(lambda part: " " * len(part[0]), text)):
        depth += (sign in "([{") - (sign in ")]}")
        if depth > MAX_NESTING:
            message = f"brackets are nested too deeply; the limit is {MAX_NESTING}"
            return TextProblem(message, (place, place + 1))
    return None


def _at_end(error: UnexpectedInput) -> bool:
    return isinstance(error, UnexpectedToken) and error.token.type == "$END"


def _syntax_error(text: str, error: UnexpectedInput) -> TextProblem:
    if _at_end(error):
        return TextProblem(
            "the statement is not complete", (len(text), len(text)), _expected(error)
        )
    start = error.pos_in_stream or 0
    if isinstance(error, UnexpectedToken):
        if error.token.type == "RPAR" and "DEFINE" in error.accepts:
            allowed = "DEFINE A AS condition; A AS TRUE, where any row is one"
            return TextProblem("DEFINE is missing", (start, start + 1), allowed)
        return TextProblem(
            f"`{error.token}` is not expected here",
            (start, start + len(error.token)),
            _expected(error),
        )
    quote = text[start]
    if quote in "'\"`":
        return TextProblem(f"what is opened with {quote} is not closed", (start, len(text)))
    return TextProblem(f"`{quote}` is not expected here", (start, start + 1), _expected(error))


def _expected(error: UnexpectedInput) -> str | None:
    names: Iterable[str] | None = None
    if isinstance(error, UnexpectedCharacters):
        names = error.allowed
    elif isinstance(error, UnexpectedToken):
        names = error.accepts
    if not names:
        return None
    signs = {terminal.name: terminal.pattern.value for terminal in _parser().terminals}
    shown = {_TERMINALS.get(name) or signs[name] for name in names}
    words = sorted(shown - {"an expression"}) + ["an expression"] * ("an expression" in shown)
    return " or ".join(words) if len(words) <= _MOST_EXPECTED else None


class _PermuteOfOne(Concatenation):
    """``PERMUTE(A)``."""

    __slots__ = ()

    @property
    def variable(self) -> RowPattern:
        """The variable of that name."""
        return self.parts[0]

    @property
    def group(self) -> RowPattern:
        """Parse the pattern in parentheses."""
        return self.parts[1]


def _span(meta: Meta) -> Span:
    return (0, 0) if meta.empty else (meta.start_pos, meta.end_pos)


def _fragment_text(text: str) -> str:
    """An expression's text for the reader of expressions, every character in its place."""

    def replace(part: re.Match[str]) -> str:
        if part["comment"]:
            return re.sub(r"[^\n]", " ", part[0])
        if part["quoted"]:
            return f"`{part[0][1:-1]}`"
        return part[0]

    return _NOT_CODE.sub(replace, text)


def _rule(make: Callable[[list[Any], Span], Any]) -> Any:
    """A rule of the grammar whose value is made of its parts and its place alone."""

    def read(_: _StatementReader, meta: Meta, children: list[Any]) -> Any:
        return make(children, _span(meta))

    return read


@v_args(meta=True)
class _StatementReader(Transformer[Token, Any]):
    """Lark's tree to the statement's; a method a rule of the grammar."""

    def __init__(self, text: str, source: str) -> None:
        super().__init__()
        self.problems: list[TextProblem] = []
        self.lacks_variables = False
        self._text = text
        self._source = source

    def name(self, meta: Meta, children: list[Token]) -> Named:
        written = str(children[0])
        if written[0] in '"`':
            name = written[1:-1].replace(written[0] * 2, written[0])
            return Named(name, name, _span(meta))
        return Named(written.upper(), written, _span(meta))

    def expression(self, meta: Meta, _: list[Any]) -> Fragment:
        start, end = _span(meta)
        return Fragment(_fragment_text(self._text[start:end]), (start, end))

    piece = inner = _rule(lambda _, __: None)
    item = _rule(lambda parts, _: Selected(*parts))
    clause = _rule(lambda parts, _: parts)
    partition = order = measures = subsets = defines = _rule(lambda parts, _: tuple(parts))
    measure = _rule(lambda parts, _: WrittenMeasure(*parts))
    one_row = _rule(lambda _, __: RowsPerMatch.ONE_ROW)
    show_empty = _rule(lambda _, __: RowsPerMatch.SHOW_EMPTY)
    omit_empty = _rule(lambda _, __: RowsPerMatch.OMIT_EMPTY)
    with_unmatched = _rule(lambda _, __: RowsPerMatch.WITH_UNMATCHED)
    past_last_row = _rule(lambda _, __: SkipClause(SkipTo.PAST_LAST_ROW))
    to_next_row = _rule(lambda _, __: SkipClause(SkipTo.NEXT_ROW))
    to_first = _rule(lambda parts, _: SkipClause(SkipTo.FIRST, parts[-1]))
    to_last = _rule(lambda parts, _: SkipClause(SkipTo.LAST, parts[-1]))
    mode = _rule(lambda words, span: Named(words[0].upper(), str(words[0]), span))
    after = within = pattern = _rule(lambda parts, _: parts[0])
    subset = _rule(lambda names, _: Subset(names[0], tuple(names[1:])))
    define = _rule(lambda parts, _: Define(*parts))

    variable = _rule(lambda names, span: PatternVariable(names[0].name, span))
    empty = _rule(lambda _, span: Empty(span))
    anchor_start = _rule(lambda _, span: Anchor("^", span))
    anchor_end = _rule(lambda _, span: Anchor("$", span))
    concatenation = _rule(lambda parts, span: Concatenation(tuple(parts), span))
    alternation = _rule(lambda parts, span: Alternation(tuple(parts), span))
    exclusion = _rule(lambda parts, span: Exclusion(parts[0], span))
    star = _rule(lambda _, __: (0, None))
    plus = _rule(lambda _, __: (1, None))
    optional = _rule(lambda _, __: (0, 1))

    result_order = _rule(lambda items, span: ResultOrder(tuple(items), span))
    rows_of = _rule(lambda parts, _: RowsOf(*parts))

    def table(self, meta: Meta, children: list[Named]) -> Named:
        written = ".".join(part.written for part in children)
        return Named(written, written, _span(meta))

    def sort(self, _: Meta, children: list[Any]) -> SortItem:
        column, direction, nulls = children
        descending = direction is not None and direction.type == "DESC"
        return SortItem(column, descending, None if nulls is None else nulls.type == "FIRST")

    def permutation(self, meta: Meta, children: list[Any]) -> RowPattern:
        word, *parts = children
        if len(parts) > 1:
            return Permutation(tuple(parts), _span(meta))
        # The standard wants two or more: this is a variable of that name, and a group.
        return _PermuteOfOne((PatternVariable(str(word).upper(), _span(meta)), *parts), _span(meta))

    def permutation_of_none(self, meta: Meta, _: list[Token]) -> RowPattern:
        self.problems.append(TextProblem("PERMUTE has no parts", _span(meta), "PERMUTE(A, B)"))
        self.lacks_variables = True
        return Empty(_span(meta))

    def exactly(self, meta: Meta, children: list[Token]) -> tuple[int, int | None]:
        return self._bounds(meta, children[0], children[0])

    def between(self, meta: Meta, children: list[Token | None]) -> tuple[int, int | None]:
        return self._bounds(meta, *children)

    def _bounds(self, meta: Meta, low: Token | None, high: Token | None) -> tuple[int, int | None]:
        for bound in (low, high):
            if bound is not None and len(bound) > _MOST_DIGITS:
                message = f"`{bound[:_MOST_DIGITS]}…` is too large a number"
                allowed = f"a number of at most {_MOST_DIGITS} digits"
                self.problems.append(TextProblem(message, _span(meta), allowed))
                return 1, 1
        least, most = int(low or 0), None if high is None else int(high)
        if most == 0:
            allowed = "an upper bound of 1 or more"
            self.problems.append(TextProblem("the upper bound is 0", _span(meta), allowed))
        elif most is not None and most < least:
            message = f"the bounds are reversed: {least} is more than {most}"
            self.problems.append(TextProblem(message, _span(meta), f"{{{most},{least}}}"))
        return least, most

    def repeated(self, meta: Meta, children: list[Any]) -> RowPattern:
        part, (least, most), reluctant = children
        if isinstance(part, _PermuteOfOne):
            # The quantifier is that of the group.
            group = Quantified(part.group, least, most, reluctant is not None, _span(meta))
            return Concatenation((part.variable, group), _span(meta))
        return Quantified(part, least, most, reluctant is not None, _span(meta))

    def start(self, _: Meta, children: list[Any]) -> Statement:
        *select, rows, first_alias, clause, last_alias, result_order = children
        (partition, order, measures, shown, after, mode, pattern, within, subsets, defines) = clause
        del first_alias  # the rows' other name; nothing can refer to it
        return Statement(
            text=self._text,
            source=self._source,
            select=tuple(select),
            rows_of=rows if isinstance(rows, RowsOf) else RowsOf(rows),
            alias=last_alias,
            partition=partition or (),
            order=order or (),
            measures=measures or (),
            rows=shown or RowsPerMatch.ONE_ROW,
            after_match=after or SkipClause(),
            mode=mode,
            pattern=pattern,
            within=within,
            subsets=subsets or (),
            defines=defines,
            result_order=result_order,
        )
