"""Types of expressions, and mistakes found against the schema."""

from __future__ import annotations

import pytest

from spark_cep.pattern.expressions import ExpressionError, check_types, parse
from spark_cep.pattern.types import UNKNOWN, RecordType, record_type
from tests.pattern.expressions.samples import EVENT

LOGIN = record_type(
    {
        "type": "record",
        "name": "Login",
        "fields": [{"name": "user", "type": "string"}, {"name": "tries", "type": "int"}],
    }
)
STEPS: dict[str, RecordType] = {"fail": LOGIN, "a": EVENT}


def checked(text: str, *, measure: bool = False) -> str:
    """The type of an expression over the sample event and the steps."""
    e = parse(text, steps=frozenset(STEPS), measure=measure)
    return str(check_types(e, EVENT, STEPS))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("i + j", "INT"),
        ("i + l", "BIGINT"),
        ("i / j", "DOUBLE"),
        ("f", "DOUBLE"),
        ("m * m", "DECIMAL(21, 4)"),
        ("n * n", "DECIMAL(38, 6)"),
        ("i > 1", "BOOLEAN"),
        ("LAST(fail.user)", "STRING"),
        ("fail.tries", "INT"),
        ("SUM(fail.tries)", "BIGINT"),
        ("AVG(fail.tries)", "DOUBLE"),
        ("SUM(a.m)", "DECIMAL(20, 2)"),
        ("AVG(a.m)", "DECIMAL(14, 6)"),
        ("MAX(fail.user)", "STRING"),
        ("COUNT(fail.*)", "BIGINT"),
        ("COUNT(DISTINCT fail.user)", "BIGINT"),
        ("COLLECT(fail.user)", "ARRAY<STRING>"),
        ("COLLECT(a.f)[0]", "DOUBLE"),
        ("STDDEV(fail.tries)", "DOUBLE"),
        ("VAR_POP(a.m)", "DOUBLE"),
        ("ts - dt", "INTERVAL DAY TO SECOND"),
        ("ts + interval 5 minutes", "TIMESTAMP"),
        ("dt - interval 5 minutes", "TIMESTAMP"),
        ("interval 2 months + dt", "DATE"),
        ("ts - interval 2 months", "TIMESTAMP"),
        ("2 * (ts - a.ts) + interval 1 day", "INTERVAL DAY TO SECOND"),
        ("-(ts - dt) > interval 1 day", "BOOLEAN"),
        ("greatest(interval 1 day, ts - dt)", "INTERVAL DAY TO SECOND"),
        ("filter(floats, x -> x > 1)", "ARRAY<FLOAT>"),
        ("filter(floats, x -> x > 1)[0]", "DOUBLE"),
        ("exists(arr, x -> x = l)", "BOOLEAN"),
        ("split(s, ',')", "ARRAY<STRING>"),
        ("date_trunc(hour, ts)", "TIMESTAMP"),
        ("timestampdiff(day, dt, ts)", "BIGINT"),
        ("add_months(ts, 1)", "DATE"),
        ("coalesce(i, l)", "BIGINT"),
        ("coalesce(m, i)", "DECIMAL(12, 2)"),
        ("greatest(dt, ts)", "TIMESTAMP"),
        ("array(i, l)", "ARRAY<BIGINT>"),
        ("map_keys(mp)", "ARRAY<STRING>"),
        ("rec.y", "STRUCT<z: STRING>"),
        ("null", "NULL"),
    ],
)
def test_type(text: str, kind: str) -> None:
    """The type is Spark's."""
    assert checked(text) == kind


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("ii > 1", "the event has no column ii; did you mean i?", "ii"),
        ("rec.w = 1", "the event has no column rec.w", "rec.w"),
        ("rec.X = 1", "the event has no column rec.X; did you mean rec.x?", "rec.X"),
        (
            "fial.user = s",
            "fial.user: fial is neither a column of the event nor a step; did you mean step fail?",
            "fial.user",
        ),
        (
            "reec.x = 1",
            "reec.x: reec is neither a column of the event nor a step; did you mean column rec?",
            "reec.x",
        ),
        (
            "i > 10 * fail",
            "the event has no column fail; fail is a step: fail.i, or COUNT(fail.*) for how often",
            "fail",
        ),
        ("LAST(fail.usr) = s", "the event has no column usr; did you mean user?", "fail.usr"),
        ("s > 1", "STRING cannot be compared with INT", "s > 1"),
        ("fail.user = 5", "STRING cannot be compared with INT", "fail.user = 5"),
        ("b = 1", "BOOLEAN cannot be compared with INT", "b = 1"),
        ("dt = '2024-01-01'", "DATE cannot be compared with STRING", "dt = '2024-01-01'"),
        ("s in ('a', 1)", "STRING cannot be compared with INT", "s in ('a', 1)"),
        ("arr = arr", "ARRAY<INT> cannot be compared with ARRAY<INT>", "arr = arr"),
        ("s + 1", "STRING + INT cannot be computed; both must be numbers", "s + 1"),
        ("dt + 1", "DATE + INT cannot be computed", "dt + 1"),
        ("ts + dt", "TIMESTAMP + DATE cannot be computed", "ts + dt"),
        ("ts * 2", "TIMESTAMP * INT cannot be computed", "ts * 2"),
        (
            "ts - interval 1 day > 5",
            "TIMESTAMP cannot be compared with INT",
            "ts - interval 1 day > 5",
        ),
        (
            "interval 1 day + interval 1 month > interval 1 day",
            "INTERVAL DAY TO SECOND + INTERVAL YEAR TO MONTH cannot be computed",
            "interval 1 day + interval 1 month",
        ),
        ("s ilike 'a' and i ilike 'a'", "ILIKE needs a STRING, not INT", "i ilike 'a'"),
        ("i rlike 'a'", "RLIKE: argument 1 is INT; it must be STRING", "i rlike 'a'"),
        (
            "interval 1 month",
            "years and months are only added to a date or timestamp, or subtracted from one",
            "interval 1 month",
        ),
        ("sin(s)", "SIN: argument 1 is STRING; it must be a number", "sin(s)"),
        ("hour(dt)", "HOUR: argument 1 is DATE; it must be TIMESTAMP", "hour(dt)"),
        (
            "year(dt, 'Asia/Tokyo')",
            "YEAR: a DATE is the same in every time zone; the zone needs a TIMESTAMP",
            "year(dt, 'Asia/Tokyo')",
        ),
        (
            "exists(i, x -> x = 1)",
            "EXISTS: argument 1 is INT; it must be an ARRAY",
            "exists(i, x -> x = 1)",
        ),
        (
            "exists(arr, x -> x + 1)",
            "EXISTS: the lambda gives INT; it must be a condition",
            "exists(arr, x -> x + 1)",
        ),
        ("exists(arr, x -> x = 'a')", "INT cannot be compared with STRING", "x = 'a'"),
        ("exists(arr, x -> x.y = 1)", "INT has no fields", "x.y"),
        (
            "COUNT(DISTINCT a.arr) > 1",
            "COUNT DISTINCT needs values that can be compared, not ARRAY<INT>",
            "COUNT(DISTINCT a.arr)",
        ),
        ("STDDEV(a.s) > 1", "STDDEV_SAMP needs numbers, not STRING", "STDDEV(a.s)"),
        ("-s", "- needs a number, not STRING", "-s"),
        ("SUM(fail.user) > 1", "SUM needs numbers, not STRING", "SUM(fail.user)"),
        ("MAX(a.arr) is null", "MAX needs values with an order, not ARRAY<INT>", "MAX(a.arr)"),
        ("i and b", "AND needs a condition, not INT", "i"),
        ("not s", "NOT needs a condition, not STRING", "s"),
        ("case when i then 1 end", "WHEN needs a condition, not INT", "i"),
        (
            "case when b then 1 else 'x' end",
            "these types do not go together: INT, STRING",
            "case when b then 1 else 'x' end",
        ),
        ("upper(i)", "UPPER: argument 1 is INT; it must be STRING", "upper(i)"),
        ("s || i", "CONCAT: argument 2 is INT; it must be STRING", "s || i"),
        ("left(s, l)", "LEFT: argument 2 is BIGINT; it must be INT", "left(s, l)"),
        ("size(i)", "SIZE: argument 1 is INT; it must be an ARRAY or a MAP", "size(i)"),
        ("arr['x']", "the index of an ARRAY is STRING; it must be INT", "arr['x']"),
        ("i[0]", "INT has no elements; it must be an ARRAY or a MAP", "i[0]"),
        ("mp[1]", "the key is INT; it must be STRING", "mp[1]"),
        ("arr[0].x", "INT has no fields", "arr[0].x"),
        ("s like 'a' and i like 'a'", "LIKE needs a STRING, not INT", "i like 'a'"),
        (
            "cast(i as timestamp)",
            "a number is not a TIMESTAMP; use TIMESTAMP_SECONDS(…) or TIMESTAMP_MILLIS(…)",
            "cast(i as timestamp)",
        ),
        ("cast(arr as int)", "ARRAY<INT> cannot become INT", "cast(arr as int)"),
        ("year(s)", "YEAR: argument 1 is STRING; it must be DATE or TIMESTAMP", "year(s)"),
        (
            "unix_millis(dt)",
            "UNIX_MILLIS: argument 1 is DATE; it must be TIMESTAMP",
            "unix_millis(dt)",
        ),
    ],
)
def test_mistake(text: str, message: str, place: str) -> None:
    """A mistake is named at its place, with the nearest name where there is one."""
    with pytest.raises(ExpressionError) as caught:
        checked(text)
    (problem,) = caught.value.problems
    assert problem.message == message
    assert text[slice(*problem.span)] == place


def test_all_mistakes_at_once() -> None:
    """One mistake does not hide another, nor cause a third."""
    with pytest.raises(ExpressionError) as caught:
        checked("nope + 1 > 'x' AND s = 1")
    assert [p.message for p in caught.value.problems] == [
        "the event has no column nope",
        "STRING cannot be compared with INT",
    ]


def test_what_is_unknown_is_not_checked() -> None:
    """Without schemas every column goes with everything."""
    e = parse("x > 1 AND upper(x) = 'A' AND SUM(a.x) > y.z", steps=frozenset({"a"}))
    check_types(e, None, {})
    assert check_types(parse("x"), None, {}) == UNKNOWN


def test_measures_read_every_event() -> None:
    """In a measure bare columns are checked against the event's schema."""
    assert checked("SUM(i)", measure=True) == "BIGINT"
    with pytest.raises(ExpressionError, match="no column nope"):
        checked("nope", measure=True)
