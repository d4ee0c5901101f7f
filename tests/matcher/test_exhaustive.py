"""All small patterns against all small streams: the machine answers what the oracle answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from spark_cep.pattern.checks.validation import refusals
from spark_cep.pattern.expressions import parse
from spark_cep.pattern.tree import AfterMatch, Contiguity, Loop, Rule, Skip, Step, Times, Within
from tests.matcher.runs import answers, stream
from tests.oracle import UndefinedError, answer_to
from tests.oracle_lines import uncovered

pytestmark = pytest.mark.slow

#: Events of a stream. One more multiplies the time by five.
LENGTH = 4
#: Every n-th pattern of three steps is tried; with 1 that takes minutes.
THINNING = 41

STREAMS = {"".join(letters): stream("".join(letters)) for letters in product("abc", repeat=LENGTH)}
LONGER_THAN_ALL = Within(max_ms=LENGTH + 10)
SHORT = Within(max_ms=LENGTH - 1)

A, B = (parse(f"name = '{letter}'", steps=frozenset()) for letter in "ab")

QUANTIFIERS: list[dict[str, Any]] = [
    {},
    {"optional": True},
    *(
        {"times": times, "loop": loop, **more}
        for times in (Times(2, 2), Times(1, None), Times(1, 2))
        for loop in Loop
        for more in ({}, {"optional": True})
    ),
    {"times": Times(1, None), "greedy": True},
    {"times": Times(1, 2), "greedy": True},
    {"times": Times(1, None), "until": B},
]
PLAIN: list[dict[str, Any]] = [
    {},
    {"optional": True},
    {"times": Times(2, 2)},
    {"times": Times(1, None)},
]
PLAIN.append({"times": Times(1, 2)})
POSITIVE = (Contiguity.NEXT, Contiguity.FOLLOWED_BY, Contiguity.FOLLOWED_BY_ANY)
NEGATIVE = (Contiguity.NOT_NEXT, Contiguity.NOT_FOLLOWED_BY)


def _steps(
    name: str, afters: tuple[Contiguity | None, ...], quantifiers: list[dict[str, Any]]
) -> Iterator[Step]:
    for after, where in product(afters, (A, B)):
        if after is not None and after.negative:
            yield Step(name, after, where)
        else:
            yield from (Step(name, after, where, **quantifier) for quantifier in quantifiers)


def _rules(patterns: Iterator[tuple[Step, ...]], within: Within) -> Iterator[Rule]:
    for pattern in patterns:
        rule = Rule("r", 1, pattern, within=within)
        if not any(refusals(rule)) and uncovered(rule) is None:
            yield rule


def _agree(rules: Iterator[Rule]) -> int:
    count = 0
    for rule in rules:
        count += 1
        found = answers(rule, STREAMS)
        for letters, events in STREAMS.items():
            try:
                expected = answer_to(rule, events)
            except UndefinedError:
                continue
            assert found[letters] == expected, f"{letters}: {rule}"
    return count


def test_one_step() -> None:
    """Each quantifier alone."""
    patterns = ((step,) for step in _steps("x", (None,), QUANTIFIERS))
    assert _agree(_rules(patterns, LONGER_THAN_ALL)) >= 40


@pytest.mark.parametrize("after", [*POSITIVE, *NEGATIVE])
def test_two_steps(after: Contiguity) -> None:
    """Each contiguity, before each quantifier."""
    patterns = product(_steps("x", (None,), PLAIN), _steps("y", (after,), QUANTIFIERS))
    assert _agree(_rules(patterns, LONGER_THAN_ALL)) >= 5


def test_two_steps_with_deadlines_between() -> None:
    """A window that runs out while the stream goes on."""
    patterns = product(_steps("x", (None,), PLAIN), _steps("y", (*POSITIVE, *NEGATIVE), PLAIN))
    assert _agree(_rules(patterns, SHORT)) >= 200


@pytest.mark.parametrize(
    "after_match",
    [
        AfterMatch(Skip.TO_NEXT),
        AfterMatch(Skip.PAST_LAST_EVENT),
        AfterMatch(Skip.TO_FIRST, "y"),
        AfterMatch(Skip.TO_LAST, "y"),
    ],
    ids=lambda after_match: after_match.strategy.value,
)
def test_skip(after_match: AfterMatch) -> None:
    """Each skip strategy over two steps, wherever a definition says which match is first."""
    patterns = product(_steps("x", (None,), PLAIN), _steps("y", POSITIVE, PLAIN))
    thinned = (pattern for number, pattern in enumerate(patterns) if number % 3 == 0)
    rules = _rules(thinned, SHORT)
    assert _agree(replace(rule, after_match=after_match) for rule in rules) >= 50


def test_two_steps_after_any_quantifier() -> None:
    """Each way to repeat, before each contiguity."""
    firsts = _steps("x", (None,), QUANTIFIERS[2:])
    patterns = product(firsts, _steps("y", (*POSITIVE, *NEGATIVE), [{}]))
    assert _agree(_rules(patterns, LONGER_THAN_ALL)) >= 100


def test_three_steps() -> None:
    """Steps on both sides of a third, NOT steps among them: a thinned sample."""
    patterns = product(
        _steps("x", (None,), PLAIN),
        _steps("y", POSITIVE + NEGATIVE, PLAIN),
        _steps("z", POSITIVE + NEGATIVE, PLAIN),
    )
    thinned = (pattern for number, pattern in enumerate(patterns) if number % THINNING == 0)
    assert _agree(_rules(thinned, SHORT)) >= 100


def test_groups() -> None:
    """Two steps as a group, repeated in each way, behind a step."""
    inner = ((), *product((Contiguity.NEXT, Contiguity.FOLLOWED_BY), (A, B)))
    patterns = (
        (
            Step("x", None, A),
            Step("g", after, group=group, **quantifier),
        )
        for after in POSITIVE
        for quantifier in QUANTIFIERS
        if not quantifier.get("greedy")
        for group in _members(inner)
    )
    assert _agree(_rules(patterns, LONGER_THAN_ALL)) >= 100


def _members(seconds: tuple[tuple[Any, ...], ...]) -> Iterator[tuple[Step, ...]]:
    head = Step("p", None, A)
    for second in seconds:
        if not second:
            yield (replace(head, where=B),)
        else:
            yield head, Step("q", second[0], second[1])
