"""Nothing that reaches outside, differs from run to run, or hides in the text gets through."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.pattern.expressions import ExpressionError, parse, to_spark_sql

HOSTILE = {
    "reflect('java.lang.System', 'exit', 1)": "reaches outside",
    "java_method('java.lang.Runtime', 'getRuntime')": "reaches outside",
    "try_reflect('a', 'b')": "reaches outside",
    "ReFlEcT('a', 'b')": "reaches outside",
    "input_file_name() = ''": "reaches outside",
    "input_file_name = input_file_name()": "reaches outside",
    "current_user()": "reaches outside",
    "current_database()": "reaches outside",
    "version()": "reaches outside",
    "rand() > 0.5": "another answer each time",
    "uuid() = x": "another answer each time",
    "now() > ts": "another answer each time",
    "current_timestamp() > ts": "another answer each time",
    "shuffle(xs)": "another answer each time",
    "x rlike '(a+)+$'": "RLIKE",
    "x regexp 'a'": "REGEXP",
    "regexp_replace(x, 'a', 'b')": "regular expression",
    "split(x, ',')": "regular expression",
    "transform(xs, y -> y)": "'->'",
    "exists(xs, y -> y = 1)": "'->'",
    "filter(xs, f)": "lambda",
    "(select 1)": "sub-query",
    "x in (select y from z)": "sub-query",
    "exists (select 1)": "sub-query",
    "(values 1)": "sub-query",
    "(with q as (select 1) select * from q)": "sub-query",
    "sum(a.x) over ()": "window",
    "row_number() over (order by x)": "window",
    "my_udf(x)": "the function my_udf is not allowed",
    "db.my_udf(x)": "qualified name",
    "x.reflect('a')": "qualified name",
    "`reflect`('a', 'b')": "plain name",
    "raise_error('x')": "not allowed",
    "assert_true(false)": "not allowed",
    "sleep(10)": "not allowed",
    "repeat(x, 1000000000)": "not allowed",
    "sequence(1, 1000000000)": "not allowed",
    "from_json(x, 'a int')": "not allowed",
    "struct(x)": "not allowed",
    "x; drop table y": "';'",
    "x -- y": "comments",
    "x /* y */": "comments",
    "/*+ BROADCAST(x) */ x": "comments",
    "x /* 'unterminated": "not closed",
    "-- x": "empty",
    "x as y": "not a type",
    "x y": "alias",
    ":x": "':'",
    "?": "'?'",
    "@x": "'@'",
    "$x": "'$'",
    "${spark.master}": "'$'",
    "{{x}}": "'{'",
    "{fn now()}": "'{'",
    "x::int": "'::'",
    "x:y": "':'",
    "identifier('x')": "not allowed",
    "x = ANY(y)": "not allowed",
    "interval 1 day": "interval",
    "*": "COUNT",
    "r'x'": "not allowed",
    "x'41'": "not allowed",
    "0x41": "not allowed",
    "U&'\\0041'": "not allowed",
    "N'x'": "not allowed",
    "1_000": "not allowed",
    "`a``b`": "quoted name",
    "`a.b`": "quoted name",
    "`a b`": "quoted name",
    "`` = 1": "not allowed",
    "ｘ = 1": "not allowed",
    "ſum(x)": "not allowed",
    "x\u200b = 1": "not allowed",
    "x ＝ 1": "not allowed",
    "x = ‘a’": "not allowed",
    "x = 'a": "not closed",
    'x = "a': "not closed",
    "x = 'a\\'": "not closed",
    "`x": "not closed",
    "x = 'a' OR 1=1 --'": "comments",
    "sum(distinct a.x)": "DISTINCT",
    "last(a.x) ignore nulls": "IGNORE NULLS",
    "count(a.x) filter (where true)": "not expected",
    "cast(x as interval)": "interval",
    "cast(x as struct<a:int>)": "not a type",
    "x collate utf8_lcase": "not expected",
    "x at time zone 'UTC'": "not allowed",
    "x like 'a' escape '!'": "ESCAPE",
    "x ilike 'a'": "ILIKE",
    "named(x => 1)": "'=>'",
    "x\x00y": "",
}


@pytest.mark.parametrize(("text", "reason"), HOSTILE.items())
def test_hostile_text_is_refused(text: str, reason: str) -> None:
    """Each is refused, for the reason that matters, in conditions and in measures."""
    for measure in (False, True):
        with pytest.raises(ExpressionError) as caught:
            parse(text, steps=frozenset({"a"}), measure=measure)
        told = " ".join(f"{p.message} {p.allowed or ''}" for p in caught.value.problems)
        assert reason in told


@given(st.text())
def test_strings_cannot_leave_their_quotes(content: str) -> None:
    """Whatever stands in a string, Spark's text holds harmless characters or hexadecimals only."""
    escaped = content.replace("\\", "\\\\").replace("'", "\\'")
    if len(escaped) > 2000 or any(0xD800 <= ord(c) < 0xE000 for c in content):
        return
    e = parse(f"x = '{escaped}'")
    text = to_spark_sql(e, lambda path: f"`{path[0]}`")
    plain = re.fullmatch(r"\(`x` = '([A-Za-z0-9 _.,:;/@#%+=<>()\[\]-]*)'\)", text)
    coded = re.fullmatch(r"\(`x` = CAST\(X'([0-9A-F]*)' AS STRING\)\)", text)
    assert plain or coded
    value = plain[1] if plain else bytes.fromhex(coded[1]).decode() if coded else None
    assert value == content


@given(st.text(max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No text makes the parser fail in any other way."""
    with suppress(ExpressionError):
        parse(text, steps=frozenset({"a"}))
