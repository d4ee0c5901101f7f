"""What is read from text: canonical form, names, look-backs, and the place of each mistake."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_cep.pattern.expressions import (
    ALL_STEPS,
    MAX_DEPTH,
    MAX_TEXT,
    MAX_TREE,
    Expression,
    ExpressionError,
    TextProblem,
    parse,
)
from tests.pattern.expressions.samples import EXPRESSIONS

STEPS = frozenset({"a", "b"})


def refused(text: str, *, measure: bool = False) -> list[tuple[str, str]]:
    """The messages for a text that must be refused, each with the text it points at."""
    with pytest.raises(ExpressionError) as caught:
        parse(text, steps=STEPS, measure=measure)
    return [(p.message, text[slice(*p.span)]) for p in caught.value.problems]


def looked_back(e: Expression) -> list[tuple[str, str, str | None, int]]:
    """Function, step, argument and offset of each look-back."""
    return [
        (
            one.function,
            one.step,
            None if one.argument is None else one.argument.canonical,
            one.offset,
        )
        for one in e.look_backs
    ]


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("price>last(a.price)", "price > LAST(a.price)"),
        ("a.price < 1", "LAST(a.price) < 1"),
        ("LAST(a.price, 0)", "LAST(a.price)"),
        ("first(a.price, 2)", "FIRST(a.price, 2)"),
        ("count(a.*)>=3", "COUNT(a.*) >= 3"),
        ("sum(a.price*a.qty)", "SUM(a.price * a.qty)"),
        ("x != 1", "x <> 1"),
        ("x == 1", "x = 1"),
        ("((x))", "x"),
        ("x and (y and z) or (w or v)", "x AND y AND z OR w OR v"),
        ("(x or y) and z", "(x OR y) AND z"),
        ("not (x and y)", "NOT (x AND y)"),
        ("x - (y - z)", "x - (y - z)"),
        ("(x - y) - z", "x - y - z"),
        ("x * (y + z)", "x * (y + z)"),
        ("x / (y * z)", "x / (y * z)"),
        ("x + (y % z) * 2 = w % 3", "x + (y % z) * 2 = w % 3"),
        ("- x", "-x"),
        ("-(-5)", "5"),
        ("-(x + 1)", "-(x + 1)"),
        ("x not in (1)", "x NOT IN (1)"),
        ("x not between 1 and 2", "x NOT BETWEEN 1 AND 2"),
        ("x is not null", "x IS NOT NULL"),
        ("x is distinct from y", "NOT x <=> y"),
        ("x || y || z", "CONCAT(x, y, z)"),
        ("nvl(x, y)", "COALESCE(x, y)"),
        ("mod(x, 2)", "x % 2"),
        ("if(x, 1, 2)", "CASE WHEN x THEN 1 ELSE 2 END"),
        ("round(x)", "ROUND(x, 0)"),
        ("to_date(x)", "CAST(x AS DATE)"),
        ("try_cast(x as integer)", "CAST(x AS INT)"),
        ("timestamp '2024-01-01 10:00:00+02:00'", "TIMESTAMP '2024-01-01 08:00:00'"),
        ("'it''s'", r"'it\'s'"),
        ("`order`.`id` = 1", "`order`.id = 1"),
        ("m['k'].x[0]", "m['k'].x[0]"),
        ("LAST(a.rec).x", "LAST(a.rec).x"),
        ("1L + 1.50 + 1e3 + 2147483648", "1L + 1.50BD + 1000.0D + 2147483648"),
        ("-2147483648", "-2147483648"),
        ("(x = 1) = (y = 2)", "(x = 1) = (y = 2)"),
    ],
)
def test_canonical_text(text: str, canonical: str) -> None:
    """Spellings of the same thing have the same canonical text."""
    assert parse(text, steps=STEPS).canonical == canonical


@pytest.mark.parametrize("text", [*EXPRESSIONS, "SUM(a.x) > 1", "a.x.y = LAST(b.x[0], 3)"])
def test_canonical_text_reads_back(text: str) -> None:
    """Canonical text is read as the same tree, and a pickled expression is equal."""
    e = parse(text, steps=STEPS)
    again = parse(e.canonical, steps=STEPS)
    assert again.node == e.node
    assert (again, hash(again)) == (e, hash(e))
    assert pickle.loads(pickle.dumps(e)) == e  # our own bytes


def test_equality_takes_steps_into_account() -> None:
    """The same text with and without the step is not the same; spacing and unused steps are."""
    assert parse("a.x > 1", steps=STEPS) != parse("a.x > 1")
    assert parse("x>1", steps=STEPS) == parse("x > 1")
    assert parse("x > 1") != "x > 1"


def test_columns_and_look_backs() -> None:
    """Columns are those outside look-backs; equal look-backs are listed once, in order."""
    e = parse("x.y > a.p AND LAST(a.p) < FIRST(b.q, 1) AND z = COUNT(a.*)", steps=STEPS)
    assert e.columns == {("x", "y"), ("z",)}
    assert looked_back(e) == [
        ("LAST", "a", "p", 0),
        ("FIRST", "b", "q", 1),
        ("COUNT", "a", None, 0),
    ]
    assert not e.is_event_only
    assert parse("x.y > 1").is_event_only


def test_measures_run_over_all_events() -> None:
    """In a measure bare columns belong to the match: the last event, or all of them."""
    e = parse("price - FIRST(price) + SUM(a.qty) + COUNT(*)", steps=STEPS, measure=True)
    assert looked_back(e) == [
        ("LAST", ALL_STEPS, "price", 0),
        ("FIRST", ALL_STEPS, "price", 0),
        ("SUM", "a", "qty", 0),
        ("COUNT", ALL_STEPS, None, 0),
    ]
    assert e.columns == frozenset()
    assert parse(e.canonical, steps=STEPS, measure=True) == e


def test_unknown_step_is_a_nested_column() -> None:
    """A dotted name that is no step is a field of a record."""
    assert parse("c.price > 1", steps=STEPS).columns == {("c", "price")}


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("LAST(x)", "LAST needs a step in a condition", "LAST(x)"),
        ("COUNT(*) > 1", "COUNT(*) is for measures; a condition counts a step", "COUNT(*)"),
        ("COUNT(c.*) > 1", "there is no step 'c'", "COUNT(c.*)"),
        ("SUM(a.x + b.y)", "SUM must stay within one step; this one uses a, b", "SUM(a.x + b.y)"),
        (
            "SUM(a.x + y)",
            "SUM must stay within one step; this one uses a, the event",
            "SUM(a.x + y)",
        ),
        ("SUM(LAST(a.x))", "a look-back cannot stand inside another", "LAST(a.x)"),
        ("LAST(a.x, y)", "the offset of LAST must be a whole number from 0 to 10000", "y"),
        ("SUM(a.x, 1)", "SUM takes 1 argument, not 2", "SUM(a.x, 1)"),
        ("LAST()", "LAST takes 1 or 2 arguments, not 0", "LAST()"),
        ("x > 1 AND uper(y)", "the function uper is not allowed", "uper(y)"),
        ("length(x, y)", "LENGTH takes 1 argument, not 2", "length(x, y)"),
        ("x =", "the expression is not complete at '='", "="),
        ("x = (1", "'(' is not closed", "("),
        ("x) = 1", "')' closes nothing", ")"),
        ("x = 'abc", "a string opened with ' is not closed", "'abc"),
        ("x 1", "'1' is not expected here", "1"),
        ("x = 1 = y", "it is not clear what belongs together", "x = 1"),
        ("x <=> y < z", "it is not clear what belongs together", "x <=> y < z"),
        ("x = y is null", "it is not clear what belongs together", "x = y"),
        ("x = y = ANY(z)", "it is not clear what belongs together", "x = y = ANY(z)"),
        ("x = 'a' 'b'", "two strings stand side by side", "'b'"),
        ("x || y + 1", "|| beside another operator is not clear", "x || y + 1"),
        ("x % y * z", "% beside another operator is not clear", "x % y * z"),
        ("x * y % z", "% beside another operator is not clear", "x * y % z"),
        ("x % y % z", "% beside another operator is not clear", "x % y % z"),
        ("x like y", "the pattern of LIKE must be a string in the text", "x like y"),
        (r"x like '\\a'", "in a LIKE pattern \\ must stand before %, _ or another \\", r"'\\a'"),
        ("1e999", "1e999 is beyond DOUBLE", "1e999"),
        ("9223372036854775808L", "9223372036854775808L is beyond BIGINT", "9223372036854775808L"),
        ("1e2BD", "'1e2BD' is not allowed in an expression", "1e2BD"),
        ("9" * 39, "a DECIMAL has at most 38 digits and no exponent", "9" * 39),
        ("9" * 60, "a number has at most 38 digits", "9" * 60),
        (
            "cast(x as decimal(1, 2, 3))",
            "DECIMAL takes precision and scale",
            "x as decimal(1, 2, 3",
        ),
        ("if(x)", "IF takes 3 arguments, not 1", "if(x)"),
        ("x is y", "IS takes NULL, TRUE, FALSE or DISTINCT FROM", "x is y"),
        ("x.5", "this is not a name", "x.5"),
        ("'a'.b", "this has no field 'b'", "'a'"),
        ("x[1, 2]", "[] takes one index or key", "x[1, 2]"),
        ("date '2024-02-30'", "this is not a DATE", "'2024-02-30'"),
        ("cast(x as blob)", "blob is not a type that CAST may name", "blob"),
        ("cast(x as decimal(39, 1))", "DECIMAL(39, 1): precision is 1 to 38", "x as decimal(39, 1"),
        ("round(x, -1)", "ROUND takes a number of digits from 0 to 18", "-1"),
        ("x in ()", "IN needs a list", "x"),
        ("x.*", "* is only allowed in COUNT(step.*)", "x.*"),
        ("", "the expression is empty", ""),
        ("FIRST(c.x)", "there is no step 'c'", "FIRST(c.x)"),
        ("COUNT(a) > 1", "a is a step; COUNT needs what to take of it", "COUNT(a)"),
        ("LAST(a) > 1", "a is a step; LAST needs what to take of it", "LAST(a)"),
        ("SUM(DISTINCT a.x)", "DISTINCT is not allowed in SUM", "SUM(DISTINCT a.x)"),
        ("COUNT(DISTINCT a.x, a.y)", "COUNT takes 1 argument, not 2", "COUNT(DISTINCT a.x, a.y)"),
        ("COUNT(DISTINCT a.*)", "* is only allowed in COUNT(step.*)", "a.*"),
        (
            "COLLECT(a.x, 1001)",
            "the bound of COLLECT must be a whole number from 1 to 1000",
            "1001",
        ),
        ("x && y", "'&&' is not allowed in an expression", "&&"),
        ("x > interval", "INTERVAL needs a number and a unit", "interval"),
        ("x > interval 5", "INTERVAL needs a number and a unit", "interval"),
        ("x > interval 'a'", "'a' is not an interval", "interval 'a'"),
        (
            "x > interval 1 day 1 month",
            "an interval is of years and months, or of weeks, days and smaller units",
            "interval 1 day 1 month",
        ),
        ("x > interval 1.5 day", "only seconds have a fraction, not DAY", "interval 1.5 day"),
        ("exists(x, y)", "the second argument of EXISTS must be a lambda of one variable", "y"),
        (
            "exists(x, (y, z) -> true)",
            "the second argument of EXISTS must be a lambda of one variable",
            "y, z) -> true",
        ),
        (
            "exists(x, y -> exists(y.z, y -> true))",
            "y is the variable of a lambda around this one",
            "y -> true",
        ),
        (
            "abs(x -> 1)",
            "a lambda outside EXISTS, FORALL and FILTER is not allowed in an expression",
            "x -> 1",
        ),
        ("x > ANY(y)", "ANY stands behind = and takes an array", "x > ANY(y)"),
        ("x rlike y", "argument 2 of RLIKE must be a string in the text", "y"),
        (
            "x rlike '('",
            "RLIKE: the regular expression cannot be read: missing ): (",
            "'('",
        ),
        (
            "hour(x, 'Europe/Berln')",
            "HOUR: 'Europe/Berln' is not the IANA name of a time zone; did you mean Europe/Berlin?",
            "'Europe/Berln'",
        ),
        (
            "hour(x, '../../etc/passwd')",
            "HOUR: '../../etc/passwd' is not the IANA name of a time zone, such as 'Europe/Berlin'",
            "'../../etc/passwd'",
        ),
        ("lpad(x, 10001)", "LPAD: the length is 10001; the limit is 10000", "10001"),
        ("repeat(x, y)", "argument 2 of REPEAT must be a whole number in the text", "y"),
        (
            "regexp_extract(x, 'a', 1)",
            "REGEXP_EXTRACT: there is no group 1; the pattern has 0, and group 0",
            "regexp_extract(x, 'a', 1)",
        ),
        ("pi(1)", "PI takes no arguments, not 1", "pi(1)"),
        ("power(x)", "POWER takes 2 arguments, not 1", "power(x)"),
        ("substring(x)", "SUBSTRING takes 2 or 3 arguments, not 1", "substring(x)"),
    ],
)
def test_refusals_point_at_the_place(text: str, message: str, place: str) -> None:
    """A mistake is named, at its place in the text."""
    found = refused(text)
    assert message in [message for message, _ in found]
    assert place.strip("'") in dict(found)[message] or dict(found)[message] in place


def test_all_problems_at_once() -> None:
    """Every mistake is reported, in the order of the text."""
    found = refused("rand() > 1 AND foo(x) = LAST(y)")
    assert [place for _, place in found] == ["rand()", "foo(x)", "LAST(y)"]


def test_places_count_lines() -> None:
    """Offsets are into the whole text, whatever its line breaks."""
    assert refused("x = 1\r\nAND foo(y)\n") == [("the function foo is not allowed", "foo(y)")]
    assert refused("x = 1\nAND y z(")[0][1] == "z"


@pytest.mark.parametrize(
    "text",
    [
        "(" * (MAX_DEPTH + 1) + "x" + ")" * (MAX_DEPTH + 1),
        "not " * (MAX_DEPTH + 1) + "x",
        "case when x then " * (MAX_DEPTH + 1) + "1" + " end" * (MAX_DEPTH + 1),
        "m" + "[m" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1),
    ],
)
def test_nesting_is_limited(text: str) -> None:
    """Too deep nesting is refused with the limit, without deep recursion."""
    assert f"the limit is {MAX_DEPTH}" in refused(text)[0][0]


def test_long_chains_are_limited() -> None:
    """A chain of operators has a limit; ANDs and ORs do not nest."""
    assert f"the limit is {MAX_TREE}" in refused(" + ".join(["x"] * 100))[0][0]
    assert f"the limit is {MAX_TREE}" in refused("x" + "[0]" * 100)[0][0]
    assert parse(" and ".join(["x"] * 1000)).canonical.count("AND") == 999


def test_length_is_limited() -> None:
    """Too long a text is refused with the limit."""
    assert f"the limit is {MAX_TEXT}" in refused("x" * (MAX_TEXT + 1))[0][0]
    assert "limit" not in refused("(" + " " * (MAX_TEXT - 1))[0][0]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("CONT(a.*) > 1", "did you mean COUNT?"),
        ("COLLECT_SET(a.x)", "use COLLECT, or COUNT(DISTINCT step.column)"),
        ("WEEKDAY(x) = 1", "use DAYOFWEEK (1 is Sunday)"),
        ("x && y", "write AND"),
        ("COUNT(a) > 1", "COUNT(a.*)"),
        ("FIRST(fial.x) = y", "did you mean fail?"),
        ("COUNT(zzz.*) > 1", "the steps are a, b, fail"),
        ("x > interval", "INTERVAL 5 MINUTES, INTERVAL '1' DAY or INTERVAL 1 HOUR 30 MINUTES"),
        ("x > ANY(y)", "value = ANY(array), or EXISTS(array, x -> x > value)"),
        ("exists(x, y)", "EXISTS(array, x -> x > 1)"),
    ],
)
def test_hint(text: str, hint: str) -> None:
    """What was probably meant is named: the nearest function or step, or the right form."""
    with pytest.raises(ExpressionError) as caught:
        parse(text, steps=frozenset({"a", "b", "fail"}))
    assert hint in [problem.allowed for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("x > interval '1' day", "x > INTERVAL 1 DAYS"),
        ("x > interval '1 hour 30 minutes'", "x > INTERVAL 90 MINUTES"),
        ("x > interval 1 hour 30 minutes", "x > INTERVAL 90 MINUTES"),
        ("x > interval -1.5 seconds", "x > INTERVAL -1500 MILLISECONDS"),
        ("x + interval 2 years > y", "x + INTERVAL 2 YEARS > y"),
        ("x + interval 1 year 1 month > y", "x + INTERVAL 13 MONTHS > y"),
        ("x + interval 0 days > y", "x + INTERVAL 0 WEEKS > y"),
        ("x.interval > 1", "x.`interval` > 1"),
        ("`interval` > 1", "`interval` > 1"),
        ("regexp_like(x, 'a')", "x RLIKE 'a'"),
        ("not x regexp 'a'", "x NOT RLIKE 'a'"),
        ("not rlike(x, 'a') and regexp(y, 'b')", "x NOT RLIKE 'a' AND y RLIKE 'b'"),
        ("x not ilike 'a%'", "x NOT ILIKE 'a%'"),
        ("x = any(y)", "ARRAY_CONTAINS(y, x)"),
        ("timestampdiff(minute, x, y) > 1", "TIMESTAMPDIFF('minute', x, y) > 1"),
        ("exists(x, t -> t.y.z = u and a.v > t)", "EXISTS(x, t -> t.y.z = u AND LAST(a.v) > t)"),
        ("exists(a.x, b -> b.y = b)", "EXISTS(LAST(a.x), b -> b.y = b)"),
        ("exists(x, t -> LAST(a.t) = t)", "EXISTS(x, t -> LAST(a.t) = t)"),
        ("COUNT(DISTINCT exists(a.x, t -> t = a.y))", "COUNT(DISTINCT EXISTS(a.x, t -> t = a.y))"),
        ("count(distinct a.x) = 1", "COUNT(DISTINCT a.x) = 1"),
        ("array_agg(a.x, 7)", "COLLECT(a.x, 7)"),
        ("collect_list(a.x)", "COLLECT(a.x, 1000)"),
        ("std(a.x)", "STDDEV_SAMP(a.x)"),
        ("pi() / 2", "PI() / 2"),
        ("to_date(x, 'Asia/Tokyo')", "TO_DATE(x, 'Asia/Tokyo')"),
        ("to_date(x)", "CAST(x AS DATE)"),
    ],
)
def test_new_forms_have_one_canonical_text(text: str, canonical: str) -> None:
    """Intervals, lambdas, patterns and aggregates have one spelling, which is read as the same."""
    e = parse(text, steps=STEPS)
    assert e.canonical == canonical
    again = parse(canonical, steps=STEPS)
    assert again == e
    assert again.canonical == canonical


def test_replace_cannot_multiply_text() -> None:
    """Nested REPLACEs that grow text exponentially are refused; harmless ones are not."""
    text = "x"
    for _ in range(5):
        text = f"replace({text}, 'a', 'aaaaaaaaaa')"
    assert "could make text 100000 times as long; the limit is 100" in refused(text)[0][0]
    assert parse("replace(replace(x, ',', ''), 'a', 'bb')")


@pytest.mark.parametrize(
    "text",
    [
        f"concat({', '.join(['x'] * 101)}) = y",
        f"replace(concat({', '.join(['x'] * 60)}), 'a', 'bb') = y",
        f"array({', '.join(['x || x'] * 51)})[0] = y",
        "repeat(x, 101) = y",
        "repeat(repeat(x, 20), 20) = y",
        f"regexp_replace(x, '', '{'y' * 100}') = y",
        f"concat_ws('{'y' * 100}', x) = y",
        "exists(array(repeat(x, 50)), t -> repeat(t, 50) = y)",
        "replace(replace(replace('" + "a" * 999 + "', 'a', '" + "b" * 99 + "'), 'b', '"
        + "c" * 99 + "'), 'c', '" + "d" * 99 + "') = x",
    ],
    ids=[
        "concat", "concat in replace", "array", "repeat", "repeats", "regexp_replace", "concat_ws",
        "lambda", "literals",
    ],
)  # fmt: skip
def test_text_that_stands_many_times_counts_each_time(text: str) -> None:
    """CONCAT and ARRAY add up, also below REPLACE, and literals grow too."""
    assert "the limit is 100" in refused(text)[0][0]


def test_ordinary_text_is_no_bomb() -> None:
    """A key of many columns, and a list of many literals, are in order."""
    assert parse(" || ':' || ".join(["x"] * 30))
    assert parse(f"array_contains(array({', '.join(repr(str(n)) for n in range(900))}), x)")


WORDS = """
( ) [ ] , . * + - / % || = <> < <=> 'q' 17 2.5 col a b x AND OR NOT IN IS NULL CASE WHEN THEN ELSE
END LIKE BETWEEN CAST AS INT LAST COUNT LENGTH array date timestamp map struct interval exists any
values distinct list filter first over `y` -> ilike rlike day minutes 'u' split
"""


@given(st.lists(st.sampled_from(WORDS.split()), max_size=14))
def test_nothing_is_lost(words: list[str]) -> None:
    """Any text is refused properly or keeps every name and constant that stands in it."""
    text = " ".join(words)
    problems: tuple[TextProblem, ...] = ()
    try:
        e = parse(text, steps=STEPS)
    except ExpressionError as error:
        problems = error.problems
    else:
        for constant in ("17", "2.5", "'q'", "col", "y"):
            assert e.canonical.count(constant) >= min(1, words.count(constant))
        assert parse(e.canonical, steps=STEPS) == e
    assert all(0 <= p.span[0] <= p.span[1] <= len(text) for p in problems)
