"""Nothing that reaches outside, differs from run to run, or hides in the text gets through."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_cep.pattern.expressions import ExpressionError, check_types, parse
from spark_cep.pattern.types import record_type
from tests.pattern.expressions.spark_sql import to_spark_sql

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
    "transform(xs, y -> y)": "not allowed",
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
    "repeat(x, 1000000000)": "the limit is 100",
    "sequence(1, 1000000000)": "not allowed",
    "from_json(x, 'a int')": "not allowed",
    "struct(x)": "not allowed",
    "x; drop table y": "';'",
    "x -- y": "comments",
    "x /* y */": "comments",
    "/*+ BROADCAST(x) */ x": "comments",
    "x /* 'unterminated": "comments",
    "-- x": "comments",
    "x as y": "alias",
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
    "named(x => 1)": "'=>'",
    "x\x00y": "",
    "x > 1 and exists (select * from json.`/etc/passwd`)": "sub-query",
    "x in (select value from text.`/etc/passwd`)": "sub-query",
    "text.`/etc/passwd`": "quoted name",
    "lateral view explode(xs) t as y": "alias",
    "explode(xs)": "not allowed",
    "stack(2, x, y)": "not allowed",
    "table(t)": "not allowed",
    "read_files('/etc')": "not allowed",
    "schema_of_json('{}')": "not allowed",
    "from_json(x, schema_of_json('{}'))": "not allowed",
    "from_avro(x, '{}')": "not allowed",
    "from_csv(x, 'a int')": "not allowed",
    "xpath_string(x, '//a')": "not allowed",
    "parse_url(x, 'HOST')": "not allowed",
    "aes_decrypt(x, 'k')": "not allowed",
    "spark_partition_id() = 0": "reaches outside",
    "input_file_block_start() > 0": "reaches outside",
    "monotonically_increasing_id() = 0": "another answer each time",
    "session_user() = 'x'": "reaches outside",
    "user() = 'x'": "reaches outside",
    "current_catalog() = 'x'": "reaches outside",
    "randn() > 0": "another answer each time",
    "randstr(5) = x": "another answer each time",
    "unix_timestamp() > 1": "not allowed",
    "typeof(x) = 'int'": "not allowed",
    "rpad(x, 2000000000, 'y') = x": "the limit is 10000",
    "lpad(x, 2000000000, 'y') = x": "the limit is 10000",
    "space(2000000000) = x": "not allowed",
    "array_repeat(x, 1000000000)[0] = x": "not allowed",
    "format_string('%2000000000d', i) = x": "not allowed",
    "factorial(20) > 1": "not allowed",
    "x rlike y": "must be a string in the text",
    "x rlike 'a{1000}'": "too large",
    "x rlike '((a{100}){100}){100}'": "cannot be read",
    "x rlike '(a)\\\\1'": "cannot be read",
    "x rlike '(?<=a)b'": "cannot be read",
    f"x like '%{'_' * 5000}%a'": "too large",
    f"x ilike '%{'a_' * 2000}'": "too large",
    "regexp_replace(x, '', y) = z": "must be a string in the text",
    "regexp_replace(x, 'a', '$9') = z": "number of a group",
    "split(x, ',', 5)": "SPLIT takes 2 arguments",
    "hour(x, y) = 1": "must be a string in the text",
    "hour(x, '/etc/localtime') = 1": "not the IANA name",
    "hour(x, 'localtime') = 1": "not the IANA name",
    "exists(xs, y -> contains(text, y))": "square",
    "exists(xs, y -> array_contains(ys, y))": "square",
    "exists(xs, x -> exists(ys, y -> x = y))": "square",
    "exists(xs, x -> exists(x.a, y -> exists(x.a, z -> z = y)))": "square",
    "exists(xs, x -> x || name = 'a')": "square",
    "exists(xs, x -> cast(concat(x, z) as int) = 1)": "square",
    "exists(xs, x -> upper(case when x = 1 then text end) = 'A')": "square",
    "filter(xs, x -> exists(split(text, x), y -> true))": "square",
    "exists(xs, x -> x -> x)": "not expected",
    "x -> '$.a[?(@.b)]'": "not expected",
    "interval '1' day to second > x": "not expected",
    "interval 999999999999999999 weeks > x": "too long",
    "x like y": "the pattern of LIKE must be a string",
    "x like any ('a', 'b')": "LIKE",
    "x similar to 'a'": "not allowed",
    "replace(x, 'a', x) = x": "must be a string in the text",
    "1e999999999 > x": "beyond DOUBLE",
    f"x > {'9' * 5000}": "38 digits",
    "cast(x as decimal(39, 0)) > 1": "precision",
    "cast(x as array<int>)": "not a type",
    "cast(x as map<string, string>)": "not a type",
    "cast(x as binary)": "not a type",
    "cast(x as variant)": "not a type",
    "cast(x as char(2000000000))": "not a type",
    "cast(x as my.type)": "not a type",
    "try_cast(x as array<int>)": "not a type",
    "x = ʼaʼ": "not allowed",
    "x； drop": "not allowed",
    "x = 1 \u202e": "not allowed",
    "x\u200f = 1": "not allowed",
    "\ufeffx = 1": "not allowed",
    "x /*! 1 */ = 1": "comments",
    "x = 1 --\r or true": "comments",
    "x # y": "not allowed",
    "x = $$a$$": "'$'",
    "@@x": "'@'",
    "${env:PATH} = x": "'$'",
    "${system:user.home}": "'$'",
    "{% x %}": "not allowed",
    "x |> select 1": "not allowed",
    "set spark.x = 1": "not expected",
    "use db": "alias",
    "identifier('reflect')('a')": "not expected",
    "execute immediate 'x'": "not expected",
    "aggregate(xs, 0, (a, b) -> a + b) > 1": "not allowed",
    "[" * 40 + "1" + "]" * 40: "not expected",
    "(" * 4000 + "x" + ")" * 4000: "nested too deeply",
    "not " * 2000 + "x": "nested too deeply",
    "- " * 2000 + "1 > x": "nested too deeply",
    "case when x then " * 200 + "1" + " else 0 end" * 200: "nested too deeply",
    " || ".join(["(x"] * 40) + ")" * 40 + " = x": "nested too deeply",
    "x = '" + "a" * 1_000_000 + "'": "the limit is 10000",
    " or ".join(["x = 1"] * 10_000): "the limit is 10000",
    f"x in ({', '.join(map(str, range(10_000)))})": "the limit is 10000",
}

COLUMNS = {
    "current_user = 'x'": "`current_user`",
    "current_timestamp > ts": "`current_timestamp`",
    "localtimestamp > ts": "`localtimestamp`",
    "session.x = 1": "`session`",
    "system.session.y = 1": "`system`",
    "`current_date` > ts": "`current_date`",
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


@pytest.mark.parametrize(("text", "column"), COLUMNS.items())
def test_names_with_a_meaning_are_columns_here(text: str, column: str) -> None:
    """What Spark would take for a function without brackets, or for a session's variable, is a
    column of the event: written in quotes, and refused where the event has none of this name."""
    e = parse(text)
    written = to_spark_sql(e, lambda path: ".".join(f"`{name}`" for name in path))
    name = column.strip("`")
    assert column in written
    assert re.sub(r"`\w+`", "", written).count(name) == 0
    event = record_type({"type": "record", "name": "E", "fields": [{"name": "q", "type": "int"}]})
    with pytest.raises(ExpressionError, match=f"no column `?{name}|{name} is neither"):
        check_types(e, event, {})


def test_spark_substitutes_nothing() -> None:
    """A string with ``${…}`` is data: Spark, which would put a setting there, sees hexadecimals."""
    text = to_spark_sql(parse("x = '${spark.master}'"), lambda path: f"`{path[0]}`")
    assert "$" not in text
