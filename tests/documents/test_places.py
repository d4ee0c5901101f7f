"""Places of a rule's parts: the characters that a problem underlines are the ones it is about."""

from __future__ import annotations

import pytest

from spark_cep.documents.places import Path, Places, field_of
from spark_cep.errors import Problem
from spark_cep.pattern.document.loading import load_rules


def underlined(problem: Problem) -> str:
    """The characters that a problem points at."""
    assert problem.span is not None
    assert problem.excerpt is not None
    start = problem.span.column - 1
    return problem.excerpt[start : start + problem.span.length]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("x = @@ 1", "@@"),
        ("'x = @@ ''a'''", "@@"),
        ("'name = ''a'' AND x = @@ 1'", "@@"),
        ('"x = \\u0031 AND @@ 1"', "@@"),
        ("|\n      x = 1\n      AND @@ = 2\n", "@@"),
        ("|-\n\n      x = 1\n      AND @@ = 2", "@@"),
        (">\n      AND @@ = 2\n", "@@"),
    ],
)
def test_offsets_are_exact_in_every_style(value: str, found: str) -> None:
    """An offset inside an expression is found again in the text, however YAML wrote it."""
    text = f"id: r\npattern:\n  - step: a\n    of_type: {value}\n"
    loaded = load_rules(text, "t")[0]
    written = loaded.rule.pattern[0].of_type or ""
    start = written.strip().index(found)
    problem = loaded.places.problem(
        "here", ("pattern", 0, "of_type"), offsets=(start, start + len(found))
    )
    assert underlined(problem) == found
    assert problem.step == "a"


def test_folded_text_is_underlined_by_line() -> None:
    """Where YAML folds lines the first line is underlined."""
    text = "id: r\npattern:\n  - step: a\n    of_type: >\n      x = 1\n      AND y\n"
    places = load_rules(text, "t")[0].places
    problem = places.problem("here", ("pattern", 0, "of_type"), offsets=(8, 9))
    assert underlined(problem) == "x = 1"
    plain = load_rules(text.replace(">\n", "\n"), "t")[0].places
    assert underlined(plain.problem("here", ("pattern", 0, "of_type"), offsets=(8, 9))) == "x = 1"


def test_problem_without_text_names_no_line() -> None:
    """Places of a rule that was never text still make a problem, which names the field."""
    places = Places("<python>", (), texts={("pattern", 0, "until"): "x = 1\nAND @@ = 2"})
    assert places.problem("wrong", ("id",)).render() == "<python>: [field id] wrong"
    assert places.problem("wrong", ("pattern", 0)).render() == "<python>: wrong"
    assert places.place(("id",)) == "<python>"
    problem = places.problem("here", ("pattern", 0, "until"), offsets=(10, 12))
    assert underlined(problem) == "@@"
    assert problem.render().splitlines()[1:] == ["until | AND @@ = 2", "            ^^"]


@pytest.mark.parametrize(
    ("path", "field"),
    [
        (("pattern", 1, "group", 0, "where"), "where"),
        (("pattern", 1), None),
        (("pattern",), "pattern"),
        (("within", "gap"), "within.gap"),
        (("emit", "measures", "total"), "emit.measures.total"),
        (("key", 0), "key"),
        ((), None),
    ],
)
def test_fields_are_named_within_their_step(path: Path, field: str | None) -> None:
    """A field's name leaves out the steps and groups around it."""
    assert field_of(path) == field


def test_part_without_place_stands_at_its_ancestor() -> None:
    """A missing part is shown at the nearest one around it; a field of the rule at itself."""
    places = load_rules("{id: r, within: 5 s, pattern: [{step: a}]}", "t")[0].places
    assert underlined(places.problem("here", ("within", "max"))) == "5 s"
    assert underlined(places.problem("here", ("pattern", 0, "where"))) == "{step: a}"
    assert underlined(places.problem("here", ("id",))) == "r"


def test_offset_beyond_the_text_is_underlined_at_its_end() -> None:
    """What is missing at the end of an expression is shown behind its last character."""
    text = "id: r\npattern:\n  - step: a\n    of_type: |\n      x =\n"
    places = load_rules(text, "t")[0].places
    span = places.span(("pattern", 0, "of_type"), offsets=(4, 5))
    assert (span.line, span.column, span.length) == (5, 10, 1)
    plain = load_rules("{id: r, pattern: [{step: a, of_type: x =}]}", "t")[0].places
    assert plain.span(("pattern", 0, "of_type"), offsets=(3, 4)).column == 41


def test_joined_escapes_fall_back_to_the_whole_value() -> None:
    """Where characters of text and value cannot be paired, the whole value is underlined."""
    text = '{"id": "r", "pattern": [{"step": "a", "of_type": "\\ud83d\\ude00 x"}]}'
    places = load_rules(text, "t")[0].places
    problem = places.problem("here", ("pattern", 0, "of_type"), offsets=(2, 3))
    assert underlined(problem) == '"\\ud83d\\ude00 x"'
