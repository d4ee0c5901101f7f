"""The grammar of expressions: no two readings, no leniency, linear time, and back from its text."""

from __future__ import annotations

import logging
import re
import time
from datetime import UTC, date
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lark import Lark

from spark_cep.pattern.expressions import MAX_TEXT, ExpressionError, parse, parse_of_rows, reading
from spark_cep.pattern.expressions.canonical import expression
from spark_cep.pattern.expressions.intervals import FORM
from spark_cep.pattern.expressions.nodes import (
    ARITHMETIC,
    COMPARISONS,
    Call,
    Cast,
    Column,
    Lambda,
    Literal,
    Member,
    Node,
    Variable,
)
from spark_cep.pattern.expressions.reading.mistakes import CAST_TARGETS
from spark_cep.pattern.expressions.reading.reader import ExpressionReader
from spark_cep.pattern.expressions.reading.row_scope import RowPatternScope
from spark_cep.pattern.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, NULL, STRING, TIMESTAMP

GRAMMAR = files(reading).joinpath("grammar.lark").read_text(encoding="utf-8")
STEPS = frozenset({"a", "b"})


def _conflicts(grammar: str, caplog: pytest.LogCaptureFixture) -> list[str]:
    caplog.clear()
    with caplog.at_level(logging.DEBUG, logger="lark"):
        Lark(grammar, parser="lalr", debug=True, g_regex_flags=re.IGNORECASE | re.ASCII)
    return [record.getMessage() for record in caplog.records if "onflict" in record.getMessage()]


def test_nothing_can_be_read_in_two_ways(caplog: pytest.LogCaptureFixture) -> None:
    """Lark finds no conflict in the grammar; in one that is ambiguous it does."""
    assert _conflicts('start: "x" | start "+" start', caplog)
    assert _conflicts(GRAMMAR, caplog) == []


def test_every_rule_is_read() -> None:
    """For each kind of tree that the grammar makes there is a method; ``when`` is one of CASE."""
    grammar = Lark(GRAMMAR, parser="lalr", g_regex_flags=re.IGNORECASE | re.ASCII)
    made = {rule.alias or str(rule.origin.name) for rule in grammar.rules}
    kept = {each for each in made if not each.startswith("_")}
    inlined = {"start", "negation", "predicate", "sum", "product", "value", "computed", "when"}
    assert [each for each in kept - inlined if not hasattr(ExpressionReader, f"_{each}")] == []


RESERVED = re.search(r"NAME: /\(\?!\(\?:([A-Z|]+)\)", GRAMMAR)


@pytest.mark.parametrize("word", RESERVED[1].split("|") if RESERVED else [])
def test_a_word_of_the_grammar_is_a_name_in_backticks(word: str) -> None:
    """And behind a dot; its canonical text says it again. Without, the message says so."""
    for text in (f"`{word}` > 1", f"x.{word} > 1", f"`{word.lower()}`.{word} > 1"):
        e = parse(text)
        assert parse(e.canonical) == e
    if word not in ("NULL", "TRUE", "FALSE"):
        with pytest.raises(ExpressionError):
            parse(f"{word} > 1")


def test_end_is_a_name_where_a_value_may_begin() -> None:
    """Steps and columns are often called so; within CASE, too."""
    text = "end.price > CASE WHEN end THEN end.x ELSE end END AND COUNT(end.*) > 1"
    e = parse(text, steps=frozenset({"end"}))
    assert e.columns == {("end",)}
    assert [each.step for each in e.look_backs] == ["end", "end", "end"]
    assert parse(e.canonical, steps=frozenset({"end"})) == e


SEPARATORS = (
    "a number without separators, such as 1000000, and a point before its decimals, as in 1.5"
)


@pytest.mark.parametrize(
    ("text", "place", "allowed"),
    [
        ("amount BETWEEN 10 100", "BETWEEN 10 100", "x BETWEEN 10 AND 100"),
        ("amount BETWEEN low high", "BETWEEN low high", "x BETWEEN 10 AND 100"),
        ("amount IN (1, )", ")", "a value"),
        ("amount IN (.1, 2) AND x IN (. 1)", ".", "a value"),
        ("LENGTH(x,, y) > 1", ",", "a value"),
        ("CAST(x AS DECIMAL(10,, 2))", ",", None),
        ("CAST(x AS VARCHAR(3))", "CAST(x AS VARCHAR(3))", CAST_TARGETS),
        ("amount AS", "AS", "an operator between two values; an alias is not allowed"),
        ("x.<> = 1", "x.<>", None),
        ("2e > 1", "2e", None),
        ("then > 1", "then", "a value; a column called then needs backticks: `then`"),
        ("x = 1 AND is = 3", "is", "a value; a column called is needs backticks: `is`"),
        ("LENGTH(IN) > 3", "IN", "a value; a column called IN needs backticks: `IN`"),
        ("case = 5", "case =",
         "CASE WHEN condition THEN value END; a column called case needs backticks: `case`"),
        ("LENGTH(case) = 5", "case)",
         "CASE WHEN condition THEN value END; a column called case needs backticks: `case`"),
        ("not = 5", "not =", "a column called not needs backticks: `not`"),
        ("interval > 5", "interval >",
         f"{FORM}; a column called interval needs backticks: `interval`"),
        ("div IN (1, 2)", "div", "FLOOR(a / b); a column called div needs backticks: `div`"),
        ("select = 1", "select", "a column called select needs backticks: `select`"),
        ("x = (SELECT 1)", "SELECT", None),
        ("x = 1 OR + NOT y", "+ NOT", "put parentheses around it"),
        ("x > 5AND y", "5AND", None),
        ("x ANDROID y", "ANDROID", "an operator between two values; an alias is not allowed"),
        ("INTERVAL('5 minutes') > x", "INTERVAL(",
         "INTERVAL 5 MINUTES, INTERVAL '1' DAY or INTERVAL 1 HOUR 30 MINUTES"),
        ("merchant contains 'x'", "contains", "CONTAINS(name, 'text')"),
        ("contains 'x'", "contains 'x'", "contains(name, 'text')"),
        ("amount > 10%", "10%", "a share as a number, such as 0.1 for 10%"),
        ("amount > 10% AND x", "10% AND", "a share as a number, such as 0.1 for 10%"),
        ("m IN 'a', 'b'", "IN 'a'", "x IN ('a', 'b')"),
        ("amount > 1,5", "1,5", "a decimal point: 1.5"),
        ("amount > 1234,500", "1234,500", "a decimal point: 1234.500"),
        ("amount > 1,500 AND x", "1,500", SEPARATORS),
        ("amount > 1,000,000", "1,000,000", SEPARATORS),
        ("ts - b.ts > 5 minutes", "5 minutes", "INTERVAL 5 MINUTES"),
        ("kind = ‘fail’ AND x", "‘fail’", "straight quotes: 'fail'"),
        ("kind = “fail”", "“fail”", "straight quotes: 'fail'"),
        ("x = ‘", "‘", "straight quotes: ''"),
        ("amount > 1 GROUP BY kind", "GROUP",
         "PARTITION BY of the clause, or `key` of the rule: each key is matched by itself"),
        ("x = 'abc' \"d\"", "' \"d\"", "join strings with ||"),
        ("naïve = 1", "naïve", "a name is ASCII letters, digits and _, not starting with a digit"),
        ("x -- y", "--", None),
        ("f(x, (y", "(", None),
    ],
)  # fmt: skip
def test_what_is_not_in_the_grammar_is_refused(text: str, place: str, allowed: str | None) -> None:
    """At its place, with what to write instead."""
    with pytest.raises(ExpressionError) as caught:
        parse(text, steps=STEPS)
    (problem,) = caught.value.problems
    assert (text[slice(*problem.span)], problem.allowed) == (place, allowed)


@pytest.mark.parametrize(
    ("tight", "loose"),
    [
        ("x OR (y AND z)", "x OR y AND z"),
        ("(NOT x) AND y", "NOT x AND y"),
        ("NOT (x = 1)", "NOT x = 1"),
        ("NOT (x IS NULL)", "NOT x IS NULL"),
        ("(x + 1) = (y - 2)", "x + 1 = y - 2"),
        ("x BETWEEN (y + 1) AND (z * 2)", "x BETWEEN y + 1 AND z * 2"),
        ("(x BETWEEN 1 AND 2) AND y", "x BETWEEN 1 AND 2 AND y"),
        ("x + (y * z)", "x + y * z"),
        ("(x - y) + z", "x - y + z"),
        ("(x / y) * z", "x / y * z"),
        ("(-x) * y", "-x * y"),
        ("-(x[0])", "-x[0]"),
        ("(x || y) = z", "x || y = z"),
        ("(x % y) = z", "x % y = z"),
    ],
)
def test_operators_bind_as_in_spark_sql(tight: str, loose: str) -> None:
    """With parentheses and without, it is the same."""
    assert parse(tight).node == parse(loose).node


UNITS = [
    *["(", "x+", "not ", "'", "`", "1,", "a.", "x.a ", "[", "[0]", ".a", "->", "x = ", "/*", "\\"],
    *["x || ", "f(", "- ", "x and ", "(x and ", "x or y and ", "' '", "''", "\"'", "1 ", "x ", "é"],
    *[
        "t -> ",
        "exists(x, t -> ",
        "cast(x as ",
        "date '",
        "_",
        "1e",
        "9",
        ".",
        "%",
        "(x,",
        "x in (",
    ],
    *[
        "case when x then ",
        "x between 1 and ",
        "is ",
        "x is null ",
        "((x) and ",
        "a=",
        " ",
        "running ",
    ],
    *["final f(", "INTERVAL 1 DAY ", "1 DAY ", "count(distinct ", "{", "x\n"],
]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.slow
def test_any_text_takes_linear_time(unit: str) -> None:
    """The longest text that is read, of one piece over and over, with or without a value before."""
    for before in ("", "x ", "x = "):
        text = (before + unit.replace("_", " ") * MAX_TEXT)[:MAX_TEXT]
        began = time.process_time()
        try:
            parse(text, steps=STEPS)
        except ExpressionError as error:
            assert len(str(error)) < 1_000  # some are read
        assert time.process_time() - began < 2


@given(st.text(alphabet=st.sampled_from("xa.,'\"`()[]*+-/%|=<>! \n1eLBD_é\\"), max_size=30))
def test_any_signs_are_read_or_refused(text: str) -> None:
    """With a place in the text, in rules of steps and of rows."""
    for read in (parse, lambda it: parse_of_rows(it, RowPatternScope({"A": ("A",)}, "A"))):
        try:
            read(text)
        except ExpressionError as error:
            assert all(0 <= each.span[0] <= each.span[1] <= len(text) for each in error.problems)


NAMES = st.sampled_from(["x", "y", "order", "end", "Case", "interval", "_1", "date"])
CONSTANTS: st.SearchStrategy[Node] = st.one_of(
    st.integers(-(2**31), 2**31 - 1).map(lambda n: Literal(n, INT)),
    st.integers(-(2**63), 2**63 - 1).map(lambda n: Literal(n, BIGINT)),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda n: Literal(n, DOUBLE)),
    st.decimals(-(10**20), 10**20, places=5).map(lambda n: parse(f"{n:f}BD").node),
    st.text().map(lambda text: Literal(text, STRING)),
    st.sampled_from([Literal(None, NULL), Literal(True, BOOLEAN), Literal(False, BOOLEAN)]),
    st.dates().map(lambda day: Literal(day, DATE)),
    st.datetimes(timezones=st.just(UTC)).map(lambda time: Literal(time, TIMESTAMP)),
    st.integers(-(10**9), 10**9).map(lambda n: parse(f"INTERVAL {n} SECONDS").node),
    st.integers(-100, 100).map(lambda n: parse(f"INTERVAL {n} MONTHS").node),
)
LEAVES = CONSTANTS | st.lists(NAMES, min_size=1, max_size=3).map(lambda path: Column(tuple(path)))
TEXTS = st.text(alphabet="ab%_'é\n", max_size=5).map(lambda text: Literal(text, STRING))


def _over(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    """An operator over operands; none that reading would make another of."""
    pair = st.tuples(inner, inner)
    names = sorted(COMPARISONS | ARITHMETIC)
    return st.one_of(
        st.builds(Call, st.sampled_from(names), pair),
        st.builds(Call, st.sampled_from(["LIKE", "ILIKE", "RLIKE"]), st.tuples(inner, TEXTS)),
        st.builds(Call, st.sampled_from(["IS NULL", "IS TRUE", "NOT", "UPPER"]), st.tuples(inner)),
        st.builds(Call, st.just("NEGATE"), st.tuples(inner.filter(_is_no_number))),
        st.builds(Call, st.just("BETWEEN"), st.tuples(inner, inner, inner)),
        st.builds(Call, st.just("IN"), st.lists(inner, min_size=2, max_size=4).map(tuple)),
        st.builds(Call, st.just("CASE"), st.tuples(inner, inner, inner)),
        st.builds(Call, st.just("CASE OF"), st.tuples(inner, inner, inner, inner)),
        st.builds(Call, st.just("[]"), pair),
        st.builds(_junction, st.sampled_from(["AND", "OR"]), pair),
        st.builds(Call, st.just("CONCAT"), pair),
        st.builds(Cast, inner, st.sampled_from([INT, DOUBLE, STRING])),
        st.builds(_exists, inner),
        st.builds(Member, st.builds(Call, st.just("[]"), pair), NAMES),
    )


def _is_no_number(node: Node) -> bool:
    return not isinstance(node, Literal) or isinstance(node.value, (str, bool, date, type(None)))


def _junction(operator: str, parts: tuple[Node, ...]) -> Node:
    """One of parts of its own kind is one of all of them."""
    flat = [
        each
        for part in parts
        for each in (
            part.arguments if isinstance(part, Call) and part.operator == operator else [part]
        )
    ]
    return Call(operator, tuple(flat))


def _exists(items: Node) -> Node:
    body = Call("=", (Variable("each"), Literal(1, INT)))
    return Call("EXISTS", (items, Lambda("each", body)))


@given(st.recursive(LEAVES, _over, max_leaves=12))
def test_a_tree_is_what_its_text_is_read_as(node: Node) -> None:
    """Whatever the tree is made of."""
    written = expression(node)
    try:
        read = parse(written.canonical)
    except ExpressionError as error:
        message = str(error)
        # Limits of what may stand inside one another, and constants that make no pattern.
        assert re.search("could make text|LIKE|lambda|square|the limit is", message), written
    else:
        assert read.node == node
        assert read.canonical == written.canonical
