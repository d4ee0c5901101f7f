"""Problems of a query over a stream, which has no end and whose rows come in the order of event
time.

A test closes its input, a job never does. What only the end of a partition decides is refused for
a job, or needs WITHIN; what makes a key wait long is warned of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from spark_cep.errors import Problem
from spark_cep.pattern.expressions import ColumnPath, bind
from spark_cep.pattern.expressions.canonical import expression, name
from spark_cep.pattern.expressions.nodes import (
    Call,
    ClassifierAt,
    ColumnAt,
    Node,
    RowReference,
    walk,
)
from spark_cep.pattern.expressions.problems import TextProblem
from spark_cep.pattern.sql import row_pattern
from spark_cep.pattern.sql.places import located
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

_WITHIN = "WITHIN INTERVAL '10' MINUTE behind PATTERN ( … )"


def stream_refusals(query: Query, event_time: ColumnPath | None = None) -> list[Problem]:
    """Why a query cannot run on a stream, whose event time is the column ``event_time`` (an empty
    path: no column)."""
    return _placed(query, found_refusals(query, event_time))


def found_refusals(query: Query, event_time: ColumnPath | None = None) -> list[TextProblem]:
    """Return the refusals with the offsets of their places."""
    found = (*found_endless(query), *found_order(query, event_time))
    return sorted(found, key=lambda problem: problem.span)


def found_endless(query: Query) -> list[TextProblem]:
    """Return the parts that only the end of a partition decides, which an endless input never
    has."""
    return [*_ends(query), *_endless(query)]


def found_order(query: Query, event_time: ColumnPath | None = None) -> list[TextProblem]:
    """Return the problems of ORDER BY, which must be the event time. ``event_time`` ``None``: its
    column is unknown."""
    return list(_order(query, event_time))


def stream_warnings(query: Query) -> list[Problem]:
    """Return warnings about results that come late, or not at all, on a stream."""
    return _placed(query, found_warnings(query))


def found_warnings(query: Query) -> list[TextProblem]:
    """Return the warnings with the offsets of their places."""
    found = (*_one_partition(query), *_open_tail(query), *_later_rows(query))
    return sorted(found, key=lambda problem: problem.span)


def _placed(query: Query, found: Iterable[TextProblem]) -> list[Problem]:
    return [located(query.text, query.source, problem) for problem in found]


def _ends(query: Query) -> Iterator[TextProblem]:
    for node in row_pattern.walk(query.pattern):
        if isinstance(node, Anchor) and node.sign == "$":
            message = "$ never holds: a stream has no last row"
            yield TextProblem(message, node.span, "a pattern without $; WITHIN ends what is open")


def _endless(query: Query) -> Iterator[TextProblem]:
    """Greedy loops that take any row: the match would be final at the end of the stream."""
    if query.within_ms is not None:
        return
    for node in row_pattern.walk(query.pattern):
        loop = isinstance(node, Quantified) and node.most is None and not node.reluctant
        if loop and isinstance(node, Quantified) and _takes_any(node.part, query):
            message = f"{node} takes any row, as often as it can: no row ends it"
            allowed = f"a condition in DEFINE, the reluctant {node}?, or {_WITHIN}"
            yield TextProblem(message, node.span, allowed)


def _takes_any(node: RowPattern, query: Query) -> bool:
    """Return whether a part can take rows without any condition."""
    match node:
        case PatternVariable(name=variable):
            if variable in query.defines:
                return _always_true(query.defines[variable].node)
            # One that could not be read is a condition all the same.
            return variable not in query.define_starts
        case Empty() | Anchor():
            return False
        case Quantified(part=part) | Exclusion(part=part):
            return _takes_any(part, query)
        case Alternation(parts=parts):
            return any(_takes_any(part, query) for part in parts)
        case Concatenation(parts=parts) | Permutation(parts=parts):
            needed = [part for part in parts if not _may_be_empty(part)]
            some = needed or parts
            taken = [_takes_any(part, query) for part in some]
            return all(taken) if needed else any(taken)


def _always_true(condition: Node) -> bool:
    """Return whether a condition holds whatever is in the row, as ``TRUE`` and ``1 = 1 OR v > 1``
    do."""
    match condition:
        case Call(operator="AND", arguments=parts):
            return all(map(_always_true, parts))
        case Call(operator="OR", arguments=parts):
            return any(map(_always_true, parts))
    read = expression(condition)
    constant = read.is_event_only and not read.columns
    return constant and bind(read, {}, {})((), ()) is True


def _may_be_empty(node: RowPattern) -> bool:
    match node:
        case PatternVariable():
            return False
        case Empty() | Anchor():
            return True
        case Quantified(part=part, least=least):
            return not least or _may_be_empty(part)
        case Exclusion(part=part):
            return _may_be_empty(part)
        case Alternation(parts=parts):
            return any(map(_may_be_empty, parts))
        case Concatenation(parts=parts) | Permutation(parts=parts):
            return all(map(_may_be_empty, parts))


def _order(query: Query, event_time: ColumnPath | None) -> Iterator[TextProblem]:
    if not query.order:
        return
    if event_time == ():
        for item in query.order:
            message = "rows come in the order of event time, the time of their Kafka record"
            yield TextProblem(
                message, item.span, "no ORDER BY; or a column as the input's event_time"
            )
        return
    # Whichever column has the time: there is one, and it ascends.
    event_time = event_time or query.order[0].path
    allowed = f"ORDER BY {name(event_time)}"
    for place, item in enumerate(query.order):
        if place == 0 and item.path != event_time:
            yield TextProblem("rows come in the order of event time", item.span, allowed)
        elif place == 0 and item.descending:
            yield TextProblem("rows come in ascending order", item.span, allowed)
        elif place:
            message = "rows of equal time come by topic, partition and offset"
            yield TextProblem(message, item.span, allowed)


def _one_partition(query: Query) -> Iterator[TextProblem]:
    if not query.partition:
        message = "without PARTITION BY all rows are one partition, which one task works on"
        yield TextProblem(message, query.pattern.span, "PARTITION BY a column")


def _open_tail(query: Query) -> Iterator[TextProblem]:
    if query.within_ms is not None:
        return
    for node in _tails(query.pattern):
        message = f"a match is final only when a row comes that {node} does not take"
        allowed = f"the reluctant {node}?, another variable behind it, or {_WITHIN}"
        yield TextProblem(message, node.span, allowed)


def _tails(node: RowPattern) -> Iterator[Quantified]:
    """Greedy quantifiers that a pattern can end in."""
    match node:
        case PatternVariable() | Empty() | Anchor():
            return
        case Quantified(least=least, most=most, reluctant=reluctant):
            if not reluctant and least != most:
                yield node
            else:
                yield from _tails(node.part)
        case Exclusion(part=part):
            yield from _tails(part)
        case Alternation(parts=parts) | Permutation(parts=parts):
            for part in parts:
                yield from _tails(part)
        case Concatenation(parts=parts):
            for part in reversed(parts):
                yield from _tails(part)
                if not _may_be_empty(part):
                    break


def _later_rows(query: Query) -> Iterator[TextProblem]:
    for measure in query.measures:
        for node in walk(measure.expression.node):
            value = node.value if isinstance(node, RowReference) else None
            position = value.position if isinstance(value, (ColumnAt, ClassifierAt)) else None
            if isinstance(value, ColumnAt) and position is not None and position.shift > 0:
                start, end = node.span
                message = "NEXT in a measure holds the match back until that row is there"
                yield TextProblem(message, (measure.start + start, measure.start + end))
