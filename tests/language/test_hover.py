"""What stands at a position."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_cep.language.diagnostics import diagnostics
from spark_cep.language.hover import hover
from spark_cep.language.known import pages
from spark_cep.language.known.pages import check_texts, function_texts
from spark_cep.language.known.signatures import is_function, signature
from spark_cep.pattern.check_codes import Code
from spark_cep.pattern.expressions.functions import ALIASES, FUNCTIONS, SPECIAL_CALLS
from spark_cep.pattern.expressions.functions.aggregation import LOOK_BACK_FUNCTIONS
from tests.language.opened import opened

STEPS = "id: r\nkey: user_id\npattern:\n  - {step: fail}\n"


@pytest.mark.parametrize(
    ("text", "word", "parts"),
    [
        ("id: r\nwith¦in: 1 hour", "within", ["the window", "`max`"]),
        ("mode: sha¦dow", "shadow", ["topic of their own", "`live`", "Default: `live`"]),
        ("key: user¦_id", "user_id", ["STRING", "The account that pays.", "`shop.Payment`"]),
        (STEPS + "emit: {measures: {n: fail.place.ci¦ty}}", "city", ["STRING", "The town."]),
        (STEPS + "emit: {measures: {n: LAST(fail.ki¦nd)}}", "kind", ["`CARD`", "'CARD'"]),
        (STEPS + "emit: {measures: {n: LA¦ST(fail.kind)}}", "LAST", ["step.column", "last event"]),
        (STEPS + "emit: {measures: {n: COUNT(fa¦il.*)}}", "fail", ["Step `fail`"]),
        ("key: substr¦ing(user_id, 1)", "substring", ["INT[, INT]", "position"]),
        ("key: nv¦l(user_id, 'x')", "nvl", ["The same as `COALESCE`"]),
        ("# spark-cep: allow no-k¦ey because x", "no-key", ["one partition", "Without a key"]),
        ("cases:\n  - case: a\n    ev¦ents: []", "events", ["`send`"]),
        ("kafka: {}\nstate:\n  check¦point: x", "checkpoint", ["checkpoint"]),
    ],
)
def test_explained(text: str, word: str, parts: list[str]) -> None:
    """Its type, meaning and example."""
    name = "r.cases.yaml" if text.startswith("cases") else "r.yaml"
    document, position = opened(text, name)
    found = hover(document, position)
    assert found is not None
    start, end = found.range
    assert document.lines[start.line][start.column : end.column] == word
    assert [part for part in parts if part not in found.text] == []


def test_statements() -> None:
    """Columns, variables and functions over rows."""
    text = (
        "-- id: r\nSELECT * FROM t MATCH_RECOGNIZE (MEASURES {} AS x PATTERN (a) DEFINE a AS 1 = 1)"
    )
    for measure, part in [
        ("a.amo¦unt", "DOUBLE"),
        ("PRE¦V(amount)", "row before"),
        ("¦a.kind", "Variable"),
    ]:
        found = hover(*opened(text.format(measure), "r.sql"))
        assert found is not None
        assert part in found.text


@pytest.mark.parametrize(
    "text", ["# a ¦comment", "key: 'no¦thing here'", "id: r\n¦\n", "key: unkn¦own", "", "x: ¦y"]
)
def test_nothing_to_say(text: str) -> None:
    """There is no answer."""
    assert hover(*opened(text)) is None


def test_the_code_of_a_diagnostic() -> None:
    """The page on checks says what it means."""
    document, position = opened("id: r\nkey: user_id\npattern: [{step: a, where: ki¦nd = NULL}]")
    found = hover(document, position, diagnostics(document))
    assert found is not None
    assert "**compared-with-null**" in found.text
    assert "STRING" in found.text


def test_the_texts_are_those_of_the_pages() -> None:
    """CONTRIBUTING.md says how they are written again."""
    docs = Path(__file__).parents[2] / "docs"
    file = Path(pages.__file__).with_name("pages.json")
    assert file.read_text("utf-8") == pages.written(pages.read_pages(docs))


def test_all_is_explained() -> None:
    """Each function and each code has its text on the pages, and functions have signatures."""
    names = {*FUNCTIONS, *ALIASES, *LOOK_BACK_FUNCTIONS} - {"FIRST", "LAST"}
    assert names <= set(function_texts())
    assert set(check_texts()) == {code.value for code in Code}
    for name in (*names, *SPECIAL_CALLS, "FIRST", "LAST"):
        assert is_function(name)
        assert signature(name).startswith(f"{name}(")
