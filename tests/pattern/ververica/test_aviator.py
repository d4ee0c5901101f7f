"""Aviator expressions as SQL: the same answers, and what is refused where."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from spark_cep.pattern.expressions import ExpressionError, bind, check_types, parse
from spark_cep.pattern.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING, RecordType
from spark_cep.pattern.ververica.aviator import sql_condition
from tests.pattern.ververica.aviator_oracle import BeyondError, Tree, takes, text_of

_RECORD = RecordType({"n": INT, "s": STRING, "b": BOOLEAN})
EVENT = RecordType(
    {
        "i": INT,
        "l": BIGINT,
        "d": DOUBLE,
        "e": DOUBLE,
        "s": STRING,
        "t": STRING,
        "b": BOOLEAN,
        "c": BOOLEAN,
        "r": _RECORD,
    }
)

_ints = st.sampled_from([None, -7, -1, 0, 1, 2, 3, 2**31 - 1])
_longs = st.sampled_from([None, -3, 0, 1, 2, 5, 2**53 + 1, 2**63 - 1])
_doubles = st.sampled_from([None, -2.5, -1.0, 0.0, 0.5, 1.0, 2.0, 1e300, math.inf, math.nan])
_texts = st.sampled_from([None, "", "a", "b", "ab", "aab", "null", "it's\n", "é"])
_bools = st.sampled_from([None, True, False])
_records = st.none() | st.fixed_dictionaries({"n": _ints, "s": _texts, "b": _bools})
events = st.fixed_dictionaries(
    {
        "i": _ints,
        "l": _longs,
        "d": _doubles,
        "e": _doubles,
        "s": _texts,
        "t": _texts,
        "b": _bools,
        "c": _bools,
        "r": _records,
    }
)


def names(*paths: str) -> st.SearchStrategy[Tree]:
    """One of the event's fields."""
    return st.sampled_from([("name", path) for path in paths])


def values(*constants: object) -> st.SearchStrategy[Tree]:
    """One of these constants."""
    return st.sampled_from([("value", constant) for constant in constants])


def calls(functions: list[str], *arguments: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    """A call of one of these functions."""
    return st.tuples(st.just("call"), st.sampled_from(functions), *arguments)


def _numbers(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    of_numbers = ["math.abs", "math.floor", "math.ceil", "math.sqrt", "math.log", "long", "double"]
    whole = calls(["long"], inner)
    return (
        st.tuples(st.sampled_from("+-*"), inner, inner)
        | st.tuples(st.just("/"), inner, values(0.5, 2.0, 3.0))
        | st.tuples(st.just("%"), inner, values(2, 3, 2.5))
        | st.tuples(st.sampled_from("/%"), whole, whole)
        | st.tuples(st.just("neg"), inner)
        | calls(of_numbers, inner)
    )


_fields = names("i", "l", "d", "e", "r.n")
numbers = st.recursive(
    _fields
    | values(0, 1, 2, 3, 10, 2**31, 2**53 + 1, 0.5, 2.5, 1e3)
    | calls(["string.length"], names("s", "r.s"))
    | calls(["string.indexOf"], names("s", "t"), values("a", "b", "ab")),
    _numbers,
    max_leaves=5,
)
plain_texts = names("s", "t", "r.s") | values("", "a", "ab", "it's\n", 'q"')
texts = (
    plain_texts
    | st.tuples(st.just("+"), values("a", ""), names("s", "r.s"))
    | st.tuples(st.just("+"), names("t", "r.s"), values("b"))
    | st.tuples(st.just("+"), values("a"), calls(["string.length"], names("s")))
    | calls(["string.substring"], names("s", "r.s"), values(0, 1), values(1, 2))
    | calls(["string.substring"], names("s"), values(0, 1, 2))
)
_signs = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
_same = st.sampled_from(["==", "!="])
_patterns = st.sampled_from(["a+", "a|b", "(?i)A.*", "[^a]*", "", r"it's\n"])
comparisons = (
    st.tuples(_signs, numbers, numbers)
    | st.tuples(_signs, texts, texts)
    | st.tuples(_signs, _fields | names("s", "b", "r.s"), values(None))
    | st.tuples(_signs, values(None), numbers)
    | st.tuples(_same, names("b", "c", "r.b"), values(True, False))
    | st.tuples(_same, names("b", "r.b"), names("c", "r.b"))
    | st.tuples(st.just("=~"), texts, st.tuples(st.just("regex"), _patterns.filter(bool)))
    | calls(["string.contains", "string.startsWith", "string.endsWith"], texts, plain_texts)
    | names("b", "c", "r.b")
)


def _conditions(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    return (
        st.tuples(st.sampled_from(["&&", "||"]), inner, inner)
        | st.tuples(st.just("not"), inner)
        | st.tuples(st.just("?"), inner, *[inner.filter(_is_condition)] * 2)
        | st.tuples(_same, inner.filter(_is_condition), values(True, False))
        | st.tuples(_same, inner.filter(_is_condition), inner.filter(_is_condition))
    )


def _is_condition(tree: Tree) -> bool:
    return tree[0] not in ("name", "value")


conditions = st.recursive(comparisons, _conditions, max_leaves=5)


def accepts(sql: str, event: Mapping[str, Any]) -> bool:
    """Whether the rule language's condition is true for the event."""
    expression = parse(sql)
    columns = {path: number for number, path in enumerate(sorted(expression.columns))}
    found = bind(expression, columns, {}, EVENT)([_at(event, path) for path in columns], [])
    return found is True


def translated(tree: Tree) -> str:
    """The SQL of a tree that is not too large and divides by no constant 0."""
    try:
        return sql_condition(text_of(tree))
    except ExpressionError as error:
        assume("too large in SQL" not in str(error) and "` by 0" not in str(error))
        raise


def _at(event: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        event = None if event is None else event[name]
    return event


def _names(tree: Tree) -> bool:
    return tree[0] == "name" or any(isinstance(part, tuple) and _names(part) for part in tree)


@pytest.mark.slow
@settings(max_examples=400)
@given(conditions.filter(_names), st.lists(events, min_size=1, max_size=6))
def test_the_answers_are_those_of_aviator(tree: Tree, some: list[Mapping[str, Any]]) -> None:
    """The SQL is true for exactly those events that Ververica's condition takes."""
    sql = translated(tree)
    for event in some:
        try:
            wanted = takes(tree, event)
        except BeyondError:
            continue
        assert accepts(sql, event) is wanted, (text_of(tree), sql, event)


@pytest.mark.parametrize("function", ["math.floor", "math.ceil", "math.sqrt", "math.log"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e300, -2.5, 0.0, None])
def test_numbers_at_the_edges(function: str, value: float | None) -> None:
    """NaN, infinities and numbers beyond BIGINT pass functions as in Java."""
    event = dict.fromkeys("ildestbcr") | {"d": value}
    call: Tree = ("call", function, ("name", "d"))
    for sign in ("==", "<", ">"):
        for constant in (0, 2.5, 1e300):
            tree: Tree = (sign, call, ("value", constant))
            assert accepts(sql_condition(text_of(tree)), event) is takes(tree, event), tree
        tree = (sign, call, ("name", "d"))
        assert accepts(sql_condition(text_of(tree)), event) is takes(tree, event), tree


@settings(max_examples=150)
@given(conditions.filter(_names))
def test_the_sql_is_canonical_and_fits_the_types(tree: Tree) -> None:
    """What is written is read again as it is, and is a BOOLEAN over an event of the right types."""
    sql = translated(tree)
    expression = parse(sql)
    assert expression.canonical == sql
    assert check_types(expression, EVENT, {}) == BOOLEAN


@pytest.mark.parametrize(
    ("aviator", "sql"),
    [
        ("price > 10 && name == 'a'", "price > 10 AND name = 'a'"),
        ('name == "it\'s"', r"name = 'it\'s'"),
        ("a != 3", "NOT a <=> 3"),
        ("a < 3", "a < 3 OR a IS NULL"),
        ("!(a > 3)", "a <= 3 OR a IS NULL"),
        ("a == b", "a <=> b"),
        ("a == nil || b != nil", "a IS NULL OR b IS NOT NULL"),
        ("a.b == nil", "a IS NOT NULL AND a.b IS NULL"),
        ("flag || b > 1", "flag OR NOT flag AND b > 1"),
        ("flag == true", "flag = TRUE"),
        ("a + 1 < 5", "a + 1L < 5"),
        ("a * b > 5", "a * 1L * b > 5"),
        ("a / 2.0 > 1", "a / 2.0D > 1"),
        ("a > -0x1F", "a > -31"),
        ("name =~ /a\\/b+/", r"name RLIKE '\\A(?:a\\/b+)\\z'"),
        (
            "math.floor(a) > 1",
            (
                "CASE WHEN ABS(a) < 9007199254740992 THEN CAST(FLOOR(a) AS DOUBLE)"
                " ELSE a * 1.0D END > 1"
            ),
        ),
        ("order == 1 ## the first", "`order` = 1"),
        ("string.contains(name, 'x') == false", "NOT CONTAINS(name, 'x')"),
        ("a ? b > 1 : c > 1", "a AND b > 1 OR NOT a AND c > 1"),
    ],
)
def test_sql(aviator: str, sql: str) -> None:
    """What usual expressions become."""
    assert sql_condition(aviator) == sql


@pytest.mark.parametrize(
    ("aviator", "part", "message"),
    [
        ("", "", "the expression is empty"),
        ("a >", ">", "the expression is not complete"),
        ("a = 3", "=", "`=` is not expected here"),
        ("a == 'b", "'", "the quote that opens here is not closed"),
        ("let x = 1; x > a", "x", "`x` is not expected here"),
        ("1 > 2", "1 > 2", "the expression reads no field; Ververica takes every event then"),
        ("a + 1", "a + 1", "a condition is expected here, found a number"),
        ("a > 1 > b", ">", "a condition is not comparable by size"),
        ("(a > 1) == b", "b", "a value beside a condition: what is nil would have to be false"),
        ("a > 1 ? b : c > 1", "b", "a value as an answer of `? :` is not supported"),
        ("a & 1 == 0", "a & 1 == 0", "operators on bits are not supported"),
        ("a << 1 > 0", "a << 1", "operators on bits are not supported"),
        ("~a > 0", "~", "operators on bits are not supported"),
        ("a ** 2 > 4", "a ** 2", "`**` is not supported; math.pow(a, b) is"),
        ("a[0] > 1", "a[0]", "elements of lists and maps, as in `a[0]`, are not supported"),
        ("now() > a", "now", "the function now is not supported"),
        ("math.pow(a) > 1", "math.pow(a)", "math.pow takes 2 arguments, found 1"),
        ("math.abs('x') > a", "math.abs('x')", "math.abs of text fails; it takes a number"),
        ("a - nil > 1", "a - nil", "`-` of nil fails"),
        ("a - 'x' > 1", "a - 'x'", "`-` of text fails"),
        (
            "'x' + 1.5 == a",
            "'x' + 1.5",
            "`+` of text and a number with a fraction is not supported",
        ),
        ("a / 0 > 1", "a / 0", "`/` drops the remainder of whole numbers, and this may be one"),
        ("long(a) / 0 > 1", "long(a) / 0", "`/` by 0"),
        (
            "a % b == 1",
            "a % b",
            "`%` by something that may be 0 has an answer for some types alone",
        ),
        ("a == 5N", "5N", "numbers beyond 64 bits and decimals are not supported"),
        ("a == 1e999", "1e999", "1e999 is beyond DOUBLE"),
        (
            "a == 99999999999999999999",
            "99999999999999999999",
            "numbers beyond 64 bits and decimals are not supported",
        ),
        (
            "a == 'x#{b}'",
            "'x#{b}'",
            "expressions inside text, as in `#{a}`, are not supported",
        ),
        (r"a == 'x\d'", r"'x\d'", r"`\d` is not an escape of Aviator"),
        ("a =~ b", "b", "a pattern, as in `=~ /a+/`, is expected here"),
        ("a == /b/", "/b/", "a pattern stands behind `=~` alone"),
        (
            "a =~ /(?<=x)y/",
            "/(?<=x)y/",
            "the regular expression cannot be read: invalid perl operator: (?<=",
        ),
        (
            "a =~ /[a-z&&[^b]]/",
            "/[a-z&&[^b]]/",
            "sets in sets (`[a-z[0-9]]`, `[a-z&&[^b]]`) are not supported",
        ),
        (r"a =~ /\v/", r"/\v/", r"`\v` means something else in RE2"),
        ("a =~ /(?m)^x/", "/(?m)^x/", "the flags `m` are not supported, only `i` and `s`"),
        ("a =~ / x/", "/ x/", "Aviator reads this pattern otherwise than it is written"),
        ("fn > 1", "fn", "`fn` is not supported"),
        ("$1 == a", "$1", "`$1` is not supported"),
        ("login.ip == a", "login.ip", "`login` is a node of the pattern and a field of the event"),
    ],
)
def test_refused(aviator: str, part: str, message: str) -> None:
    """What has no counterpart is refused by its place."""
    with pytest.raises(ExpressionError) as caught:
        sql_condition(aviator, frozenset({"login"}))
    (problem,) = caught.value.problems
    assert problem.message == message
    assert aviator[slice(*problem.span)] == part


def test_all_mistakes_at_once() -> None:
    """Every part of an expression that is refused is told, in order."""
    with pytest.raises(ExpressionError) as caught:
        sql_condition("now() > 1 && (a & b || stirng.contains(a, 'x')) && c[0] == d ** 2")
    assert [problem.span[0] for problem in caught.value.problems] == [0, 14, 23, 51, 59]
    assert "did you mean `string.contains`" in str(caught.value.problems[2].allowed)


def test_depth_and_size_are_bounded() -> None:
    """Expressions that would become huge are refused: what may fail is said twice."""
    deep = "!" * 100 + "a"
    with pytest.raises(ExpressionError, match="more than 64 operators stand inside one another"):
        sql_condition(deep)
    huge = "a.b > 1"
    for _ in range(12):
        huge = f"({huge}) == (c.d > 2)"
    for _ in range(5):
        huge = f"({huge} ? a.b > 1 : c.d > 2)"
    with pytest.raises(ExpressionError, match="needs more than 5,000 operators in SQL"):
        sql_condition(huge)
    brackets = "math.abs(" * 40 + "d" + ")" * 40
    with pytest.raises(ExpressionError, match=r"too large in SQL: .* nested too deeply"):
        sql_condition(f"{brackets} > 1")
    with pytest.raises(ExpressionError, match="the limit is 10,000"):
        sql_condition("a > 1 && " * 2_000 + "b > 1")
