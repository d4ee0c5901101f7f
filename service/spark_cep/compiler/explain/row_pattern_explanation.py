"""Explain a rule in SQL in words: its pattern, its output, its program, and the state of a key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isqrt
from typing import assert_never

from spark_cep.compiler.explain.explanation import (
    Explanation,
    Row,
    Section,
    fate_rows,
    rows,
    warning_lines,
)
from spark_cep.compiler.explain.wording import window_in_words
from spark_cep.compiler.row_pattern.distinction import reads_rows_taken
from spark_cep.compiler.row_pattern.plan import RowPatternPlan
from spark_cep.errors import Problem, printable
from spark_cep.pattern.expressions import ColumnPath
from spark_cep.pattern.expressions.canonical import name
from spark_cep.pattern.sql.query import Computed, Query
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
from spark_cep.pattern.sql.spelling import leaves_columns_open
from spark_cep.pattern.tree import Rule
from spark_cep.pattern.work import FOLD, FOLD_CALL, ROW_CALL, THREAD

_TIMES = {(0, None): "any number of times", (1, None): "once or more", (0, 1): "once or not at all"}
_TOGETHER = {
    Concatenation: "one after the other",
    Alternation: "one of these, the first rather than the next",
    Permutation: "all of these in any order, that of the text rather than another",
}


def explain_query(
    rule: Rule, plan: RowPatternPlan, warnings: Sequence[Problem] = ()
) -> Explanation:
    """Explain ``plan``, that of the query of ``rule``, which has these ``warnings``."""
    query = plan.query
    return Explanation(
        (
            Section(f"Rule {rule.id}, version {rule.version}", tuple(_head(rule, plan))),
            Section("Pattern", tuple(_part(query.pattern, query, "  "))),
            Section("Columns of the result", tuple(_columns(query))),
            Section("Program", tuple(f"  {printable(line)}" for line in plan.program.lines)),
            Section("What a key may hold", rows(_kept(rule, plan))),
            Section("Work of one row", rows(_work(rule, plan))),
            Section("Warnings", tuple(warning_lines(warnings))),
        )
    )


def _head(rule: Rule, plan: RowPatternPlan) -> Iterator[str]:
    query = plan.query
    if rule.description:
        yield f"  {printable(rule.description)}"
    target = f" {' or '.join(query.target)}" if query.target else ""
    ties = ", ".join(map(str, query.order[1:]))
    head = {
        "fingerprint": plan.fingerprint,
        "key": ", ".join(map(name, query.partition)) or "none: all rows are one partition",
        "input": query.input,
        **({} if query.where is None else {"rows are": f"events where {query.where.canonical}"}),
        **({"equal times": f"ordered by {ties}"} if ties else {}),
        "window": window_in_words(rule.within) or "none",
        "rows": query.rows.lower(),
        "after a match": f"skip {query.skip.lower()}{target}",
    }
    yield from rows([*head.items(), *fate_rows(rule)])


def _part(node: RowPattern, query: Query, indent: str, times: str = "") -> Iterator[str]:
    """A part of the pattern and what is within, a line each; ``times``: how often it repeats."""
    match node:
        case PatternVariable(name=variable):
            condition = query.defines.get(variable)
            which = "any row" if condition is None else f"a row where {condition.canonical}"
            yield f"{indent}{printable(f'{variable}{times}: {which}')}"
        case Empty():
            yield f"{indent}no row{times}"
        case Anchor(sign=sign):
            yield f"{indent}the {'beginning' if sign == '^' else 'end'} of the partition{times}"
        case Quantified(part=Quantified() as part):
            yield f"{indent}{_repetition(node)}:"
            yield from _part(part, query, indent + "  ")
        case Quantified(part=part):
            yield from _part(part, query, indent, f", {_repetition(node)}")
        case Exclusion(part=part):
            yield f"{indent}not among the rows of the result{times}:"
            yield from _part(part, query, indent + "  ")
        case Concatenation(parts=parts) | Alternation(parts=parts) | Permutation(parts=parts):
            yield f"{indent}{_TOGETHER[type(node)]}{times}:"
            for part in parts:
                yield from _part(part, query, indent + "  ")
        case _:
            assert_never(node)


def _repetition(node: Quantified) -> str:
    least, most = node.least, node.most
    if least == most:
        return "once" if least == 1 else f"{least} times"
    bounds = f"{least} times or more" if most is None else f"{least} to {most} times"
    preferred = "as seldom as possible" if node.reluctant else "as often as possible"
    return f"{_TIMES.get((least, most), bounds)}, {preferred}"


def _columns(query: Query) -> Iterator[str]:
    yield from rows((output.name, _source(output.source, query)) for output in query.outputs)
    if leaves_columns_open(query):
        yield "  and all other columns of the input, which --schema names"


def _source(source: ColumnPath | int | Computed, query: Query) -> str:
    if isinstance(source, Computed):
        return f"{source.expression.canonical}, of columns of the result"
    if isinstance(source, tuple):
        return f"the column {name(source)}"
    return query.measures[source].expression.canonical


def _kept(rule: Rule, plan: RowPatternPlan) -> Iterator[Row]:
    query, limits = plan.query, rule.limits
    before = f", and {plan.reach} before it, which PREV may read" if plan.reach else ""
    yield "rows", f"since the first of the attempt{before}; {limits.events:,} at most"
    yield "of each row", ", ".join(map(name, plan.columns)) or "no column"
    size = f"one for each of {len(plan.program.instructions)} instructions"
    if any(plan.distinctions):
        size += ", more where conditions look back at other rows"
    yield "threads", f"{size}; {limits.partial_matches:,} at most"
    if query.within_ms is not None:
        yield "for how long", "until its window ends, also if the key has no further row"
    if plan.remembers:
        yield "for good", "of each key that was seen, what PREV, ^ or MATCH_NUMBER() refer to"


def _work(rule: Rule, plan: RowPatternPlan) -> Iterator[Row]:
    most, width = rule.limits.work, plan.program.width
    yield "limit", f"{most:,} steps of some 10 ns; beyond it the attempt is given up"
    yield "open attempt", f"at most {width:,} instructions, {THREAD} steps each, and conditions"
    steps = f"a step for each operation and value kept, {ROW_CALL:,} for a call of Python"
    yield "conditions", steps
    values = (value for each in plan.query.defines.values() for value in each.row_values)
    looks_back = any(map(reads_rows_taken, values))
    if looks_back:
        text = "the rows that each thread has taken: 2 steps or more for what look-backs keep of"
        text += f" them, {FOLD} for what Python makes of them, {FOLD_CALL} where it computes an"
        yield "grows with", f"{text} expression of each"
    span = width * THREAD
    text = f"the rows behind the start of an attempt that ends: {span:,} steps each"
    if most // span < rule.limits.events:
        text += f", so some {most // span:,} rows reach the limit"
    yield "grows with", text
    again = isqrt(2 * most // span)
    if again < rule.limits.events:
        text = "the square of these rows, where each of them begins a match or an attempt that only"
        refuse = "look-backs refuse"
        if looks_back and plan.query.within_ms is not None:
            refuse += " or WITHIN ends"
        yield "grows with", f"{text} {refuse}: some {again:,} rows reach the limit"
