"""Functions give what Spark gives for the same text, outside ANSI mode and in UTC.

Left out are forms that are not Spark's: RE2's own syntax, SPLIT by plain text, zones of HOUR and
the like, and what Spark raises an error for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_cep.pattern.expressions import parse
from tests.pattern.expressions.samples import COLUMNS, EVENTS, SPARK_SCHEMA, in_python
from tests.pattern.expressions.test_spark_equality import comparable

pytestmark = pytest.mark.spark

NUMBERS = ["i", "d", "e", "m"]
ZONES = ["'Europe/Berlin'", "'America/St_Johns'", "'Asia/Kolkata'", "'UTC'"]
UNITS = "year quarter month week day hour minute second millisecond microsecond"
TEXTS = [
    *(f"{f}({n})" for f in ["exp", "ln", "log10", "log2", "log"] for n in NUMBERS),
    *(
        f"{f}({n})"
        for f in ["sin", "cos", "tan", "asin", "acos", "atan", "radians", "degrees"]
        for n in NUMBERS
    ),
    "cast(d as string)",
    "cast(e as string)",
    "power(d, e)",
    "power(i, j)",
    "power(j, 0.5D)",
    "log(2, d)",
    "atan2(d, e)",
    "atan2(i, j)",
    "pi()",
    "initcap(lower(t))",
    "reverse(s)",
    "repeat(s, 3)",
    "repeat(s, 0)",
    "lpad(s, 5, 'xy')",
    "lpad(t, 3)",
    "rpad(s, 5, 'xy')",
    "rpad(t, 2)",
    "lpad(t, 3, '')",
    "translate(s, 'abc-', 'x')",
    "concat_ws('-', s, t)",
    "concat_ws(', ', s, split(t, '_'))",
    "instr(s, t)",
    "instr(s, 'b')",
    "locate(t, s)",
    "locate('2', s, 4)",
    "position('2', s)",
    "split_part(s, '-', 2)",
    "split_part(s, '-', -1)",
    "split_part(s, t, 1)",
    "split(s, '-')",
    "s ilike '%STRA_E%'",
    "s rlike '^[a-z]+$'",
    "s not rlike '[0-9]{4}'",
    "regexp_like(s, '\\\\d+')",
    "regexp_extract(s, '([0-9]+)-([0-9]+)', 2)",
    "regexp_extract(s, '[0-9]+', 0)",
    "regexp_replace(s, '[0-9]', '#')",
    "regexp_replace(s, '([a-z])([a-z])', '$2$1')",
    "regexp_count(s, '[a-z0-9]+')",
    *(f"from_utc_timestamp(ts, {z})" for z in ZONES),
    *(f"to_utc_timestamp(ts, {z})" for z in ZONES),
    *(f"date_trunc('{u}', ts)" for u in UNITS.split()),
    "date_trunc('month', dt)",
    *(f"timestampdiff({u}, ts, timestamp '2024-03-31 10:00:00')" for u in UNITS.split()),
    *(f"timestampdiff({u}, timestamp '2023-08-31 23:00:00', ts)" for u in UNITS.split()),
    "date_add(dt, 3)",
    "date_add(ts, j)",
    "date_sub(dt, 3)",
    "add_months(dt, 1)",
    "add_months(dt, -12)",
    "unix_micros(ts)",
    "timestamp_seconds(i)",
    "timestamp_millis(i)",
    "timestamp_micros(i)",
    "ts + interval 5 minutes",
    "ts - interval '1' day",
    "ts + interval 1 month",
    "dt + interval 3 months",
    "dt - interval 2 years",
    "ts - interval 1 hour 30 minutes > timestamp '2024-01-01 00:00:00'",
    "ts - timestamp '2024-02-29 12:00:00' > interval 10 minutes",
    "timestamp '2024-02-29 12:00:00' - ts <= interval '36' hours",
    "dt - date '2024-02-28'",
    "exists(arr, x -> x > 2)",
    "exists(arr, x -> x = i)",
    "forall(arr, x -> x > 2)",
    "forall(doubles, x -> x > 1)",
    "filter(arr, x -> x >= 3)",
    "filter(arr, x -> x is not null)",
    "exists(split(s, '-'), p -> length(p) = 2)",
]
FAR = 9998
"""Spark goes on beyond the year 9999, and its Python side cannot read that."""


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> Iterator[Any]:
    """The sample events that lie within the years that both know, with ANSI mode off."""
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    rows = [tuple(event[name] for name in COLUMNS) for event in kept()]
    yield spark.createDataFrame(rows, SPARK_SCHEMA).coalesce(1).localCheckpoint()
    spark.conf.set("spark.sql.ansi.enabled", str(before))


def kept() -> list[dict[str, Any]]:
    """Events whose time is in no year near the ends of the calendar."""
    return [e for e in EVENTS if e["ts"] is None or 1900 < e["ts"].year < FAR]


def alike(ours: Any, theirs: Any) -> bool:
    """Whether two values are the same, doubles up to their last digits."""
    if isinstance(ours, float) and isinstance(theirs, float):
        return math.isclose(ours, theirs, rel_tol=1e-14) or comparable(ours) == comparable(theirs)
    if isinstance(ours, timedelta) and isinstance(theirs, timedelta):
        return ours == theirs
    return bool(comparable(ours) == comparable(theirs))


def test_same_text_same_value(frame: Any) -> None:
    """Every text has Spark's value on every event."""
    wrong = []
    for start in range(0, len(TEXTS), 40):
        texts = TEXTS[start : start + 40]
        moments = [text.startswith(("date_trunc", "from_utc", "to_utc", "timestamp_", "ts + ",
                                    "ts - interval '1' day")) for text in texts]  # fmt: skip
        written = [
            f"unix_micros({text}) AS c{n}" if moment else f"{text} AS c{n}"
            for n, (text, moment) in enumerate(zip(texts, moments, strict=True))
        ]
        rows = frame.selectExpr(*written).collect()
        for n, text in enumerate(texts):
            places = [EVENTS.index(event) for event in kept()]
            ours = in_python(parse(text))
            for row, place in zip(rows, places, strict=True):
                found = ours[place]
                if moments[n] and found is not None:
                    found = comparable(found)[1]
                if not alike(found, row[n]):
                    wrong.append(f"{text} on event {place}: {found!r}, in Spark {row[n]!r}")
    assert "\n".join(wrong) == ""
