"""Reading text that nobody vouches for: bounded, and with no other outcome than rule or refusal."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.errors import Problem, RuleSetError
from service.pattern.document import load_rules

_BOUNDS = "at most 50 levels and 50,000 nodes"


@pytest.mark.parametrize(
    ("text", "message", "allowed"),
    [
        (
            "x" * 1_000_001,
            "the text has 1,000,001 characters",
            "at most 1,000,000 characters in one file",
        ),
        ("[" * 100_000, "the document is more than 50 levels deep", _BOUNDS),
        (
            "[" + "1," * 60_000 + "]",
            "the document has more than 50,000 nodes, uses of aliases counted",
            _BOUNDS,
        ),
        (
            (
                "a: &a [1,2,3,4,5,6,7,8,9]\n"
                "b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
                "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
                "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n"
                "e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\n"
            ),
            "the document has more than 50,000 nodes, uses of aliases counted",
            _BOUNDS,
        ),
        ("&a [*a]", "the document is more than 50 levels deep", _BOUNDS),
    ],
    ids=["size", "depth", "nodes", "aliases", "recursion"],
)
def test_input_without_bound_is_refused(text: str, message: str, allowed: str) -> None:
    """Size, depth and nodes are limited, and the limit is in the error."""
    with pytest.raises(RuleSetError) as caught:
        load_rules(text, "rule.yaml")
    (problem,) = caught.value.problems
    assert (problem.message, problem.allowed) == (message, allowed)


@pytest.mark.parametrize("key", ["<", "<one>", "<mapping>"])
def test_unknown_keys_that_look_like_tags(key: str) -> None:
    """They are told of by their names."""
    with pytest.raises(RuleSetError) as caught:
        load_rules(f"{key}: 0", "rule.yaml")
    assert f"unknown key `{key}`" in [problem.message for problem in caught.value.problems]


@given(st.text(max_size=60) | st.text("[]{}:,-|>'\"&*!#? \n\tab1<", max_size=60))
@settings(max_examples=400, deadline=None)
def test_no_text_breaks_the_reader(text: str) -> None:
    """Any text is a rule or is refused; nothing else happens."""
    problems: tuple[Problem, ...] = ()
    try:
        loaded = load_rules(text, "any")
    except RuleSetError as error:
        loaded, problems = [], error.problems
    assert loaded or problems
    assert all(problem.render() for problem in problems)
