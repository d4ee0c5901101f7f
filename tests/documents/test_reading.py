"""Reading text that nobody vouches for: bounded, and with no other outcome than rule or refusal."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_cep.errors import MOST_PROBLEMS, Problem, RuleSetError
from spark_cep.pattern.document.loading import load_rules

_BOUNDS = "at most 50 levels, 50,000 nodes and 1,000,000 characters"
_WRITTEN_OUT = "the document has more than 1,000,000 characters once each alias is written out"


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
        ("[&a " + "x" * 100_000 + ", *a" * 10 + "]", _WRITTEN_OUT, _BOUNDS),
        ("[&a {" + "x" * 1_000 + ": 1}" + ", *a" * 1_000 + "]", _WRITTEN_OUT, _BOUNDS),
        ("a: &a {" + "x" * 1_000 + ": 1}\nb: [" + "{<<: *a}," * 999 + "]", _WRITTEN_OUT, _BOUNDS),
        (
            "&a " + "x" * 600_000 + "\n---\n" + "y" * 399_990 + "\n",
            "a rule must be a mapping",
            None,
        ),
    ],
    ids=[
        "size", "depth", "nodes", "aliases", "recursion",
        "texts", "keys", "merged keys", "as written",
    ],
)  # fmt: skip
def test_input_without_bound_is_refused(text: str, message: str, allowed: str) -> None:
    """Size, depth and nodes are limited, and the limit is in the error."""
    with pytest.raises(RuleSetError) as caught:
        load_rules(text, "rule.yaml")
    problem = caught.value.problems[0]
    assert problem.message == message
    assert problem.allowed == (allowed or problem.allowed)


@pytest.mark.parametrize(
    "number",
    ["0x" + "f" * 5_000, "9" * 4_301, "0b" + "1" * 20_000, "0" + "7" * 6_000, "1" + ":1" * 3_000,
     "1" * 5_000 + ".5", "1" + ":1" * 3_000 + ".5", "-0x" + "f" * 5_000],
)  # fmt: skip
@pytest.mark.parametrize("field", ["version", "within", "unknown", "id"])
def test_a_number_has_a_bounded_number_of_digits(number: str, field: str) -> None:
    """However it is written; Python cannot even write a larger one into a message."""
    with pytest.raises(RuleSetError, match=r"this number has [\d,]+ characters") as caught:
        load_rules(f"{field}: {number}\n", "rule.yaml")
    (problem,) = [p for p in caught.value.problems if "number" in p.message]
    assert (problem.span and problem.span.line, problem.allowed) == (
        1, "at most 1,000; or text in quotes",
    )  # fmt: skip


def test_no_more_than_so_many_problems_are_looked_for() -> None:
    """The first of them are told, and that there may be more."""
    for text in (
        "pattern: [{step: a}]\nkey: [" + "2001-99-99," * 1_200 + "]",
        "pattern: [" + "1, " * 1_200 + "]",
        "pattern: [{step: a}]\n" + "".join(f"key{n}: 1\n" for n in range(1_200)),
        "pattern: [{step: a}]\n" + "".join(f"key{n}:\n" for n in range(1_200)),
        "key: [" + "x =, " * 1_200 + "]\npattern: [{step: a}]",
    ):
        with pytest.raises(RuleSetError) as caught:
            load_rules("id: r\n" + text, "rule.yaml")
        first, *others = caught.value.problems
        assert first.message.startswith("1,000 things or more are wrong with this rule")
        assert len(others) == MOST_PROBLEMS


@pytest.mark.parametrize("key", ["<", "<one>", "<mapping>"])
def test_unknown_keys_that_look_like_tags(key: str) -> None:
    """They are told of by their names."""
    with pytest.raises(RuleSetError) as caught:
        load_rules(f"{key}: 0", "rule.yaml")
    assert f"unknown key `{key}`" in [problem.message for problem in caught.value.problems]


@given(st.text(max_size=60) | st.text("[]{}:,-|>'\"&*!#? \n\tab1<", max_size=60))
@settings(max_examples=400)
def test_no_text_breaks_the_reader(text: str) -> None:
    """Any text is a rule or is refused; nothing else happens."""
    problems: tuple[Problem, ...] = ()
    try:
        loaded = load_rules(text, "any")
    except RuleSetError as error:
        loaded, problems = [], error.problems
    assert loaded or problems
    assert all(problem.render() for problem in problems)
