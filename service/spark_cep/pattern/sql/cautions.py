"""Problems of a query over a stream, which has no end and whose rows come in the order of event
time.

A test closes its input, a job never does. What only the end of a partition decides is refused for
a job, or needs WITHIN; what makes a key wait long is warned of.
"""

from __future__ import annotations

from collections.abc import Iterator

from spark_cep.pattern.check_codes import Code
from spark_cep.pattern.expressions import ColumnPath, bind
from spark_cep.pattern.expressions.canonical import expression, name
from spark_cep.pattern.expressions.contradictions import never_true
from spark_cep.pattern.expressions.nodes import (
    COMPARISONS,
    Call,
    ClassifierAt,
    Column,
    ColumnAt,
    Expression,
    Node,
    RowReference,
    walk,
)
from spark_cep.pattern.expressions.problems import TextProblem, TextWarning
from spark_cep.pattern.key_types import with_article
from spark_cep.pattern.sql import row_pattern
from spark_cep.pattern.sql.query import Query
from spark_cep.pattern.sql.row_pattern import (
    Alternation,
    Anchor,
    Concatenation,
    PatternVariable,
    Permutation,
    Quantified,
    RowPattern,
    parts_of,
)
from spark_cep.pattern.sql.untaken import untaken_rows
from spark_cep.pattern.sql.work import rows_of
from spark_cep.pattern.types import ArrayType, MapType, RecordType, column_type

_WITHIN = "WITHIN INTERVAL '10' MINUTE behind PATTERN ( … )"


def endless_parts(query: Query) -> list[TextProblem]:
    """The parts that only the end of a partition decides, which an endless input never has."""
    return [*_ends(query), *_endless(query)]


def stream_warnings(query: Query) -> list[TextWarning]:
    """The parts that make results come late, or not at all, on a stream, and conditions that are
    probably not what their author means."""
    with_itself = list(_with_itself(query))
    known = {problem.span for problem in with_itself}
    problems = [
        *_one_partition(query),
        *(problem for problem in _never_true(query) if problem.span not in known),
        *_no_window(query),
        *_open_tail(query),
        *_later_rows(query),
        *with_itself,
        *(problem for problem in untaken_rows(query) if problem.span not in known),
        *_quoted_texts(query),
    ]
    if not any(_WITHIN in problem.allowed for problem in problems) and not endless_parts(query):
        problems += _waiting_attempt(query)
    return sorted(problems, key=lambda problem: problem.span)


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
        case Concatenation(parts=parts) | Permutation(parts=parts):
            needed = [part for part in parts if not _may_be_empty(part)]
            taken = [_takes_any(part, query) for part in needed or parts]
            return all(taken) if needed else any(taken)
    return any(_takes_any(part, query) for part in parts_of(node))


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
        case Quantified(least=0):
            return True
        case Alternation(parts=parts):
            return any(map(_may_be_empty, parts))
    return all(map(_may_be_empty, parts_of(node)))


def order_problems(query: Query, event_time: ColumnPath | None = None) -> Iterator[TextProblem]:
    """The problems of ORDER BY, which must be the column ``event_time`` (an empty path: no column;
    ``None``: it is not known which one)."""
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
        kind = None if query.event is None else column_type(query.event, item.path)
        if place and isinstance(kind, (ArrayType, MapType, RecordType)):
            message = f"{name(item.path)} is {with_article(kind)}, which has no order"
            yield TextProblem(message, item.span, "a column of numbers, texts or times")


def _one_partition(query: Query) -> Iterator[TextWarning]:
    if not query.partition:
        message = "without PARTITION BY all rows are one partition, which one task works on"
        yield TextWarning(message, query.pattern.span, "PARTITION BY a column", Code.NO_KEY)


def _never_true(query: Query) -> Iterator[TextWarning]:
    """Conditions that no row meets."""
    conditions = [
        (condition, query.define_starts[variable], f"so no row is {variable}")
        for variable, condition in query.defines.items()
    ]
    if query.where is not None:
        conditions.append((query.where, query.where_start, "so there are no rows"))
    for condition, start, consequence in conditions:
        for found in never_true(condition.node, condition.text):
            effect = consequence if found.whole else "so this part never counts"
            a, b = found.span
            yield TextWarning(
                f"{found.message}, {effect}",
                (start + a, start + b),
                found.allowed,
                found.code,
                found.fix,
            )


def _no_window(query: Query) -> Iterator[TextWarning]:
    """Reluctant loops that take any row: only a row of the part behind them ends the attempt."""
    if query.within_ms is not None:
        return
    for node in row_pattern.walk(query.pattern):
        loop = isinstance(node, Quantified) and node.most is None and node.reluctant
        if loop and isinstance(node, Quantified) and _takes_any(node.part, query):
            message = f"{node} takes any row: until one is what follows, the attempt waits for ever"
            yield TextWarning(message, node.span, _WITHIN, Code.NO_WINDOW)


def _waiting_attempt(query: Query) -> Iterator[TextWarning]:
    """An attempt over several rows, which stays for a key that has no next row."""
    most = rows_of(query.pattern)[1]
    if query.within_ms is None and (most is None or most > 1):
        message = (
            "without WITHIN an attempt waits for the next row of its key for ever: each key that"
            " begins one holds state until the row comes"
        )
        yield TextWarning(message, query.pattern.span, _WITHIN, Code.NO_WINDOW)


def _open_tail(query: Query) -> Iterator[TextWarning]:
    if query.within_ms is not None:
        return
    for node in _tails(query.pattern):
        message = f"a match is final only when a row comes that {node} does not take"
        allowed = f"the reluctant {node}?, another variable behind it, or {_WITHIN}"
        yield TextWarning(message, node.span, allowed, Code.LATE_RESULT)


def _tails(node: RowPattern) -> Iterator[Quantified]:
    """Greedy quantifiers that a pattern can end in."""
    if isinstance(node, Quantified) and not node.reluctant and node.least != node.most:
        yield node
        return
    for part in reversed(parts_of(node)):
        yield from _tails(part)
        if isinstance(node, Concatenation) and not _may_be_empty(part):
            break


def _later_rows(query: Query) -> Iterator[TextWarning]:
    for measure in query.measures:
        for node in _of_later_rows(measure.expression):
            start, end = node.span
            message = "NEXT in a measure holds the match back until that row is there"
            if query.within_ms is not None:
                message += ", also beyond WITHIN"
            span = measure.start + start, measure.start + end
            allowed = "PREV or LAST, which read rows that are there"
            yield TextWarning(message, span, allowed, Code.LATE_RESULT)
    for variable, condition in query.defines.items():
        message = f"a row is {variable} only when the row that NEXT reads is there"
        if query.within_ms is None:
            message += ": the last match of a key may wait for ever"
            allowed = f"PREV in the condition of the variable behind it; or {_WITHIN}"
        else:
            message += ": when WITHIN ends before, the timeout lacks it"
            allowed = "PREV in the condition of the variable behind it"
        for node in _of_later_rows(condition):
            start = query.define_starts[variable]
            span = start + node.span[0], start + node.span[1]
            yield TextWarning(message, span, allowed, Code.LATE_RESULT)


def _of_later_rows(expression: Expression) -> Iterator[Node]:
    """Yield the parts of an expression that read rows behind the current one."""
    for node in walk(expression.node):
        value = node.value if isinstance(node, RowReference) else None
        position = value.position if isinstance(value, (ColumnAt, ClassifierAt)) else None
        if isinstance(value, ColumnAt) and position is not None and position.shift > 0:
            yield node


def _with_itself(query: Query) -> Iterator[TextWarning]:
    """Comparisons and differences of a column of the row under test with the same one."""
    for variable, condition in query.defines.items():
        start = query.define_starts[variable]
        for node in walk(condition.node):
            if not isinstance(node, Call) or node.operator not in (*COMPARISONS, "-", "/"):
                continue
            left, right = node.arguments
            column = next((each for each in walk(left) if isinstance(each, Column)), None)
            if column is None or left != right:
                continue
            read = name(column.path)
            message = f"this is the same value twice: that of the row itself, which is {variable}"
            allowed = f"PREV({read}), of the row before; LAST({variable}.{read}, 1), of the last"
            yield TextWarning(
                message,
                (start + node.span[0], start + node.span[1]),
                f"{allowed} {variable} before this one",
                Code.COMPARED_WITH_ITSELF,
            )


def _quoted_texts(query: Query) -> Iterator[TextWarning]:
    """Names in double quotes that a plain one is compared with. Where the type of the events is
    known, so is whether they are columns."""
    starts = query.define_starts
    conditions = [(condition, starts[v]) for v, condition in query.defines.items()]
    conditions += [] if query.where is None else [(query.where, query.where_start)]
    for condition, start in conditions if query.event is None else ():
        for node in walk(condition.node):
            if not isinstance(node, Call) or node.operator not in (*COMPARISONS, "IN"):
                continue
            spans = [operand.span for operand in node.arguments]
            texts = [query.text[start + a : start + b] for a, b in spans]
            for (a, b), text in zip(spans[1:], texts[1:], strict=True):
                if text.startswith('"') and not texts[0].startswith('"'):
                    message = f"{text} is a column: double quotes stand around names"
                    allowed = f"a text in single quotes: '{text[1:-1]}'"
                    span = start + a, start + b
                    yield TextWarning(message, span, allowed, Code.QUOTED_TEXT)
