"""The work of a row, as far as the shape of a pattern shows it: what makes one row cost very much.

The matcher counts the steps of work; here is only whether few rows of a key reach the limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isqrt, prod

from spark_cep.pattern.check_codes import Code
from spark_cep.pattern.expressions import And, Expression, Leaf, boolean_structure
from spark_cep.pattern.expressions.nodes import ColumnAt, RowAggregate, RowReference, walk
from spark_cep.pattern.expressions.problems import TextWarning
from spark_cep.pattern.sql import row_pattern
from spark_cep.pattern.sql.program_size import program_size
from spark_cep.pattern.sql.query import Query
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
)
from spark_cep.pattern.sql.statement import SkipTo
from spark_cep.pattern.work import THREAD

_FEW_ROWS = 1_000
"""More rows are seldom those of one attempt."""
_MS_OF_A_ROW = 10_000
"""Rows of one key seldom come faster throughout a window."""


def work_warnings(query: Query, most_work: int, most_rows: int) -> Iterator[TextWarning]:
    """Yield the parts for which few rows of an attempt reach the limits ``most_work`` or, of rows
    alone, do not reach ``most_rows``."""
    span = THREAD * open_instructions(query.pattern)
    longest = rows_of(query.pattern)[1]
    reached = most_work // span
    looks_again = query.skip in (SkipTo.NEXT_ROW, SkipTo.FIRST)
    looks_again = looks_again or any(map(_of_the_match, query.defines.values()))
    if looks_again and reached < min(_FEW_ROWS, most_rows if longest is None else longest):
        yield TextWarning(
            f"some {open_instructions(query.pattern):,} instructions are open before each row:"
            f" {reached:,} rows of an attempt reach `limits.work`",
            query.pattern.span,
            "fewer ways to read the same rows: no repetition within a repetition, one variable with"
            " OR for many alternatives",
            Code.MUCH_WORK,
        )
    again = isqrt(2 * most_work // span)
    if longest is None and again < min(_FEW_ROWS, most_rows):
        if query.within_ms is None:
            yield from _square(query, again)
        elif again * _MS_OF_A_ROW <= query.within_ms:
            yield from _timeouts(query, again)


def _square(query: Query, rows: int) -> Iterator[TextWarning]:
    """The parts that make the search go through the rows of an attempt again for each of them."""
    allowed = "WITHIN INTERVAL '10' MINUTE behind PATTERN ( … )"
    if query.skip in (SkipTo.NEXT_ROW, SkipTo.FIRST):
        message = (
            f"SKIP {query.skip} goes through the rows of a match again for each of them:"
            f" some {rows:,} rows reach `limits.work`"
        )
        skip = f"AFTER MATCH SKIP PAST LAST ROW; or {allowed}"
        yield TextWarning(message, query.pattern.span, skip, Code.MUCH_WORK)
    for variable in _looping(query.pattern):
        condition = query.defines.get(variable)
        span = None if condition is None else _of_the_match(condition)
        if span is not None:
            message = (
                "a row that only this condition refuses makes the search go through the rows of the"
                f" attempt again for each of them: some {rows:,} rows reach `limits.work`"
            )
            yield _of_condition(query, variable, span, message, allowed)


def _timeouts(query: Query, rows: int) -> Iterator[TextWarning]:
    """Yield the first condition that reads rows taken, so that attempts do not share their work, if
    a loop goes on whatever a row is: then WITHIN ends an attempt at each row of the window."""
    if not any(_takes_any_row(query.defines.get(each)) for each in _looping(query.pattern)):
        return
    for variable, condition in query.defines.items():
        span = _of_the_match(condition)
        if span is not None:
            message = (
                "attempts share no work if a condition reads rows that they have taken: if an event"
                f" ends those of a window of some {rows:,} rows, it reaches `limits.work`"
            )
            allowed = "a shorter WITHIN, a condition over its own row, or a higher `limits.work`"
            yield _of_condition(query, variable, span, message, allowed)
            return


def _of_condition(
    query: Query, variable: str, span: tuple[int, int], message: str, allowed: str
) -> TextWarning:
    """Return the warning about a part of a variable's condition; ``span`` is where the part stands
    in the condition."""
    start = query.define_starts[variable]
    return TextWarning(message, (start + span[0], start + span[1]), allowed, Code.MUCH_WORK)


def _takes_any_row(condition: Expression | None) -> bool:
    """Return whether no row is refused by what it is, nor by a comparison with another one."""
    if condition is None:
        return True
    whole = boolean_structure(condition)
    parts = whole.parts if isinstance(whole, And) else (whole,)
    return all(isinstance(part, Leaf) and _is_over_rows(part.expression) for part in parts)


def _is_over_rows(condition: Expression) -> bool:
    """Return whether a condition reads an aggregate."""
    references = (node for node in walk(condition.node) if isinstance(node, RowReference))
    return any(isinstance(each.value, RowAggregate) for each in references)


def _looping(pattern: RowPattern) -> Iterator[str]:
    """Yield the variables that a loop without upper bound repeats, once each."""
    loops = (each for each in row_pattern.walk(pattern) if isinstance(each, Quantified))
    endless = (part for each in loops if each.most is None for part in row_pattern.walk(each))
    yield from dict.fromkeys(each.name for each in endless if isinstance(each, PatternVariable))


def _of_the_match(condition: Expression) -> tuple[int, int] | None:
    """Return where a condition reads more than rows at a distance from its own, which say the same
    of each attempt."""
    for node in walk(condition.node):
        if isinstance(node, RowReference):
            value = node.value
            position = value.position if isinstance(value, ColumnAt) else None
            near = position is not None and not position.variables and position.pick == "LAST"
            if not near or position is None or position.offset or position.final:
                return node.span
    return None


def rows_of(node: RowPattern) -> tuple[int, int | None]:
    """Return the least and the most rows of a part; ``None`` for any number."""
    match node:
        case PatternVariable():
            return 1, 1
        case Empty() | Anchor():
            return 0, 0
        case Exclusion(part=part):
            return rows_of(part)
        case Quantified(part=part, least=least, most=most):
            shortest, longest = rows_of(part)
            none = most is None or longest is None
            return shortest * least, None if none else prod((longest or 0, most or 0))
        case Alternation(parts=parts):
            each = [rows_of(part) for part in parts]
            longest_of = [longest for _, longest in each]
            most_of = [longest for longest in longest_of if longest is not None]
            endless = len(most_of) < len(each)
            return min(least for least, _ in each), None if endless else max(most_of)
        case Concatenation(parts=parts) | Permutation(parts=parts):
            each = [rows_of(part) for part in parts]
            most_of = [longest for _, longest in each if longest is not None]
            endless = len(most_of) < len(each)
            return sum(least for least, _ in each), None if endless else sum(most_of)


def open_instructions(node: RowPattern) -> int:
    """Return some upper bound of the instructions that the threads of an attempt come to before one
    row. Behind a part that takes more rows or fewer, and in a loop of one, it may be all."""
    match node:
        case PatternVariable() | Anchor() | Empty():
            return 1
        case Exclusion(part=part):
            return open_instructions(part) + 2
        case Alternation(parts=parts):
            return sum(map(open_instructions, parts)) + 2 * (len(parts) - 1)
        case Permutation():
            return program_size(node)
        case Concatenation(parts=parts):
            return _one_by_one(parts)
        case Quantified(part=part, least=least, most=most):
            if not _is_flexible(part):
                return open_instructions(part) + 2 * (least != most)
            return program_size(node)


def _one_by_one(parts: Sequence[RowPattern]) -> int:
    found, flexible = 0, False
    for part in parts:
        if flexible:
            found += program_size(part)
        else:
            found = max(found, open_instructions(part))
            flexible = _is_flexible(part)
    return found


def _is_flexible(node: RowPattern) -> bool:
    least, most = rows_of(node)
    return least != most
