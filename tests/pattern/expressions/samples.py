"""Events with awkward values, and the expressions that both evaluators must agree on."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from spark_cep.pattern.expressions import Expression, bind
from spark_cep.pattern.types import RecordType, record_type


def _optional(kind: Any) -> Any:
    return ["null", kind]


_INNER = {"type": "record", "name": "Inner", "fields": [{"name": "z", "type": ["null", "string"]}]}
_RECORD = {
    "type": "record",
    "name": "Rec",
    "fields": [{"name": "x", "type": ["null", "int"]}, {"name": "y", "type": ["null", _INNER]}],
}
_KINDS: dict[str, Any] = {
    "i": "int",
    "j": "int",
    "l": "long",
    "f": "float",
    "d": "double",
    "e": "double",
    "m": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
    "n": {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 10},
    "s": "string",
    "t": "string",
    "b": "boolean",
    "ts": {"type": "long", "logicalType": "timestamp-micros"},
    "dt": {"type": "int", "logicalType": "date"},
    "bin": "bytes",
    "arr": {"type": "array", "items": ["null", "int"]},
    "doubles": {"type": "array", "items": "double"},
    "floats": {"type": "array", "items": "float"},
    "mp": {"type": "map", "values": ["null", "int"]},
    "rec": _RECORD,
}
EVENT: RecordType = record_type(
    {
        "type": "record",
        "name": "Event",
        "fields": [{"name": name, "type": _optional(kind)} for name, kind in _KINDS.items()],
    }
)
COLUMNS = tuple(_KINDS)
SPARK_SCHEMA = (
    "i INT, j INT, l BIGINT, f FLOAT, d DOUBLE, e DOUBLE, m DECIMAL(10,2), n DECIMAL(30,10), "
    "s STRING, t STRING, b BOOLEAN, ts TIMESTAMP, dt DATE, bin BINARY, arr ARRAY<INT>, "
    "doubles ARRAY<DOUBLE>, floats ARRAY<FLOAT>, mp MAP<STRING, INT>, "
    "rec STRUCT<x: INT, y: STRUCT<z: STRING>>"
)


FLOAT_1E30 = 1.0000000150474662e30


def _event(**values: Any) -> dict[str, Any]:
    return {name: values.get(name) for name in COLUMNS}


EVENTS: list[dict[str, Any]] = [
    _event(),
    _event(
        i=1,
        j=2,
        l=3,
        f=0.5,
        d=1.5,
        e=-2.25,
        m=Decimal("1.50"),
        n=Decimal("2.0000000001"),
        s="abc",
        t="b",
        b=True,
        ts=datetime(2024, 2, 29, 12, 34, 56, 789000, UTC),
        dt=date(2024, 2, 29),
        bin=b"\x00\xff",
        arr=[1, None, 3],
        doubles=[1.5, math.nan],
        floats=[0.5, 1.25],
        mp={"a": 1, "b": None},
        rec={"x": 7, "y": {"z": "deep"}},
    ),
    _event(
        i=2147483647,
        j=-1,
        l=9223372036854775807,
        f=1.25,
        d=1e300,
        e=1e-300,
        m=Decimal("99999999.99"),
        n=Decimal("99999999999999999999.9999999999"),
        s="",
        t="",
        b=False,
        ts=datetime(1969, 12, 31, 23, 59, 59, 999500, UTC),
        dt=date(1969, 12, 31),
        bin=b"",
        arr=[],
        doubles=[],
        floats=[],
        mp={},
        rec={"x": None, "y": None},
    ),
    _event(
        i=-2147483648,
        j=0,
        l=-9223372036854775808,
        f=-0.0,
        d=0.0,
        e=-0.0,
        m=Decimal("0.00"),
        n=Decimal("0E-10"),
        s="  12 ",
        t="-7",
        b=True,
        ts=datetime(1, 1, 2, tzinfo=UTC),
        dt=date(1, 1, 2),
        bin=b"a",
        arr=[None],
        doubles=[0.0],
        floats=[2.0],
        mp={"": 0},
        rec={"x": 0, "y": {"z": None}},
    ),
    _event(
        i=7,
        j=-3,
        l=-7,
        f=FLOAT_1E30,
        d=math.nan,
        e=math.inf,
        m=Decimal("-2.25"),
        n=Decimal("-0.0000000001"),
        s="Straße 😀",
        t="😀",
        b=None,
        ts=datetime(9999, 12, 31, 23, 59, 59, 999999, UTC),
        dt=date(9999, 12, 31),
        bin=b"\x80",
        arr=[7, 7],
        doubles=[math.inf],
        floats=[FLOAT_1E30],
        mp={"k": 5},
        rec={"x": 1, "y": {"z": ""}},
    ),
    _event(
        i=0,
        j=5,
        l=4611686018427387904,
        f=16777216.0,
        d=-math.inf,
        e=2.5,
        m=Decimal("0.05"),
        n=Decimal("12345.6789012345"),
        s="2024-02-29",
        t="a_b%c",
        b=False,
        ts=datetime(2024, 2, 29, tzinfo=UTC),
        dt=date(2024, 3, 1),
        arr=[3, 2, 1],
        mp={"a": 9},
    ),
    _event(i=-5, j=3, d=2.345, e=1.005, m=Decimal("2.35"), s="2024-2-9 1:2:3.5+05:30", t="Abc"),
    _event(i=3, j=3, l=3, d=3.0, e=9007199254740993.0, s="1e3", t="1E3", m=Decimal("3.00")),
    _event(l=9007199254740993, d=9007199254740992.0, s="\uffff", t="\U00010000", b=True),
    _event(s="True", t="tRUE ", d=-0.5, e=0.5, l=10, i=10, j=4),
    _event(s="12345678901234567890", t="+12", d=2147483647.5, e=-2147483648.5),
    _event(s="line\nbreak\ttab", t="\\", d=9.3e18, e=-9.3e18, i=60, j=60),
    _event(s="2024-02-30", t="2024-02-29T24:00:00"),
    _event(s="2024-02-29T23:59:59.1234567Z", t="0000-01-01", d=1e-7, e=123456789.125),
    _event(s="2024-02-29 10:00:00-18:01", t="2024-02-29 10:00Z", d=0.1, e=0.2),
    _event(s="'; ${x} \\' --", t="inf", d=1.1, e=1.1, f=1.10000002384185791015625),
    _event(s=" NaN ", t="2024-02-29 10:00:00Z", d=4.5, e=-4.5),
    _event(s="0x1F", t="1.5f", i=100, j=7),
    _event(s="99999999999999999999999999999999999999", t=".5", m=Decimal("12.34")),
    _event(s="ΟΔΟΣ ΑΣ.", t="İıſẞ ŉ ǆ"),
    _event(s="1e-40", t="1e40", n=Decimal("0.5555555555")),
]

EXPRESSIONS = [
    line.strip()
    for line in r"""
    i = j
    i <> l
    i < d
    l = d
    l < e
    m > d
    m = 1.5
    n >= m
    f = 0.5
    f = d
    f + f
    f * 1.1
    floats[0]
    floats[0] = 0.5
    element_at(floats, -1) + 1
    s < t
    s = 'abc'
    b = true
    b < false
    ts < dt
    dt = ts
    ts > timestamp '2024-02-29 01:00:00+01:00'
    dt >= date '2024-02-29'
    bin = bin
    bin < bin
    i <=> j
    i <=> null
    d <=> e
    s is distinct from t
    not b
    b and i = 1
    b or i = 1
    b is true
    b is not true
    b is false
    b is null
    b is not false
    i in (1, 2, 3)
    i in (1, null)
    i in (1, 2.5)
    i in (1, 2.5D)
    l in (d, 3)
    s in ('abc', t)
    d in (0.0D, 1.5D)
    i not in (7, j)
    i between 1 and j
    i between j and null
    d not between e and 2
    s between 'a' and 'b'
    s like 'a%'
    s like '%b%'
    s like 'a_c'
    s like '_%'
    s not like '%é%'
    t like 'a\_b\%c'
    t like '\\\\'
    s like '%e%e%'
    s like '%\n%'
    s like ''
    s like '%'
    i + j
    i - j
    i * j
    i / j
    i % j
    l + l
    l - 1
    l * 2
    l / j
    l % j
    i + l
    i * 2L
    -i
    -l
    -d
    -m
    -(i + j)
    abs(i)
    abs(l)
    abs(d)
    abs(m)
    abs(n)
    -n
    floor(n)
    -(99999999999999999999999999999999999.5) < n
    d + e
    d - e
    d * e
    d / e
    d % e
    d + i
    d * m
    d / 0
    m + 1
    m - n
    m * m
    m * n
    n * n
    m / 3
    m / m
    n / m
    n / n
    m % 2
    m % m
    n % m
    n + l
    l * m
    i / 2.5
    1 + 1.5
    2147483647 + 1
    -2147483648 - 1
    9223372036854775807 + 1
    -9223372036854775808 = l
    0.1 + 0.2
    0.1D + 0.2D
    1e3 * i
    7 / 2
    -7 % 3
    7 % -3
    mod(i, j)
    mod(d, 0)
    case when b then i when i = 7 then l else d end
    case i when 1 then 'one' when j then 'j' else s end
    case when b then 1 end
    if(b, i, m)
    if(b, i, d)
    coalesce(b, i = 1)
    coalesce(i, l, 5)
    coalesce(m, i)
    coalesce(i, d)
    nvl(s, 'none')
    ifnull(dt, ts)
    nullif(i, j)
    nullif(i, 1.0)
    nullif(d, e)
    greatest(i, j, l)
    greatest(d, e, 1)
    least(d, e)
    least(s, t)
    greatest(m, i)
    least(dt, ts)
    greatest(null, i)
    round(d)
    round(e)
    round(d, 2)
    round(e, 2)
    round(m)
    round(m, 1)
    round(n, 3)
    round(m, 5)
    round(i)
    round(l, 2)
    floor(d)
    ceil(d)
    ceiling(e)
    floor(i)
    floor(m)
    ceil(m)
    floor(floor(m))
    ceil(n)
    floor(-m)
    sqrt(d)
    sqrt(i)
    sqrt(m)
    sign(d)
    sign(i)
    signum(m)
    upper(s)
    lower(upper(s))
    upper(lower(coalesce(null, upper(least(s, s)))))
    lower(s)
    trim(s)
    ltrim(s)
    rtrim(s)
    length(s)
    char_length(t)
    length(bin)
    substring(s, 2)
    substring(s, 2, 2)
    substring(s, 0, 2)
    substring(s, -3, 2)
    substring(s, -10, 7)
    substring(s, i)
    substring(s, i, j)
    substr(s, 2, -1)
    substring(s, -2147483648, 2)
    substring(s, 1, 2147483647)
    substring(s, 2, 2147483647)
    left(s, 2)
    left(s, i)
    right(s, 2)
    right(s, j)
    right(s, i)
    concat(s, t)
    s || '-' || t
    concat(s)
    replace(s, 'b', 'xx')
    replace(s, '', 'xx')
    replace(s, 'e', '')
    startswith(s, 'a')
    startswith(s, t)
    endswith(s, '')
    contains(s, t)
    contains(s, 'b')
    size(arr)
    size(mp)
    cardinality(doubles)
    array_contains(arr, 1)
    array_contains(arr, i)
    array_contains(arr, 2)
    array_contains(doubles, d)
    array_contains(doubles, 1)
    array_contains(floats, 0.5D)
    array_contains(array(i, j), 3)
    array_contains(array('a', s), 'abc')
    arr[0]
    arr[i]
    arr[-1]
    arr[1] is null
    element_at(arr, 1)
    element_at(arr, -1)
    element_at(arr, 0)
    element_at(arr, j)
    element_at(arr, i)
    i < 99999999999999999999.5
    99999999999999999999 > l
    i <> -99999999999999999999
    element_at(arr, -2147483648)
    case when null then 1 else 2 end
    if(null, i, j)
    mp['a']
    mp['b']
    mp[s]
    element_at(mp, 'a')
    element_at(mp, 'none')
    map_contains_key(mp, 'a')
    map_contains_key(mp, s)
    array_contains(map_keys(mp), 'a')
    map_values(mp)[0]
    size(map_keys(mp))
    rec.x
    rec.y.z
    rec.y.z = ''
    array(i, j)[1]
    array(1, 2.5)[0]
    cast(i as string)
    cast(l as string)
    cast(m as string)
    cast(n as string)
    cast(b as string)
    cast(ts as string)
    cast(dt as string)
    cast(s as int)
    cast(t as int)
    cast(s as bigint)
    cast(t as bigint)
    cast(s as double)
    cast(t as double)
    cast(s as decimal(10, 2))
    cast(t as decimal(38, 10))
    cast(s as decimal(38, 38))
    cast(s as boolean)
    cast(t as boolean)
    cast(s as date)
    cast(t as date)
    cast(s as timestamp)
    cast(t as timestamp)
    to_date(s)
    to_date(ts)
    cast(d as int)
    cast(d as bigint)
    cast(e as int)
    cast(e as bigint)
    cast(l as int)
    cast(m as int)
    cast(n as bigint)
    cast(n as int)
    cast(i as double)
    cast(l as double)
    cast(n as double)
    cast(d as decimal(10, 2))
    cast(e as decimal(38, 18))
    cast(i as decimal(5, 2))
    cast(l as decimal)
    cast(n as decimal(12, 4))
    cast(i as boolean)
    cast(d as boolean)
    cast(m as boolean)
    cast(b as int)
    cast(b as double)
    cast(b as decimal(3, 1))
    cast(ts as date)
    cast(dt as timestamp)
    try_cast(s as int)
    cast(' 7 ' as int)
    cast(null as string)
    year(ts)
    year(dt)
    month(ts)
    day(dt)
    dayofmonth(ts)
    hour(ts)
    minute(ts)
    second(ts)
    dayofweek(dt)
    dayofweek(ts)
    unix_millis(ts)
    unix_seconds(ts)
    datediff(dt, ts)
    datediff(date '2024-03-01', dt)
    unix_millis(cast(s as timestamp))
    null = null
    null is null
    null and false
    not null
    true
    'it''s' = "it's"
    '\u00e9\n\t\\\'' || t
    '${spark.app.name}' = s
    '%\\_' = t
    i = 1 and (b or j = 2) and not (l > 3 or d is null)
    (i = j) = (l = 3)
    """.splitlines()
    if line.strip()
]


def in_python(e: Expression, event: RecordType | None = EVENT) -> list[Any]:
    """The values on every event, computed in Python."""
    paths = {path: number for number, path in enumerate(sorted(e.columns))}
    compute = bind(e, paths, {}, event)
    results = []
    for values in EVENTS:
        read = []
        for path in paths:
            value: Any = values
            for part in path:
                value = None if value is None else value[part]
            read.append(value)
        results.append(compute(read, ()))
    return results
