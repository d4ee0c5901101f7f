"""Compares expressions with Spark's answers to the same, value by value."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from spark_cep.pattern.expressions import bind, check_types, parse
from spark_cep.pattern.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    ArrayType,
    DecimalType,
    MapType,
    RecordType,
    SqlType,
)
from tests.pattern.expressions.spark_forms import Form
from tests.pattern.expressions.spark_values import SPARK_TYPES

_TYPES: Mapping[str, SqlType] = {
    "i": INT,
    "l": BIGINT,
    "f": FLOAT,
    "d": DOUBLE,
    "m": DecimalType(10, 2),
    "n": DecimalType(38, 18),
    "s": STRING,
    "b": BOOLEAN,
    "t": TIMESTAMP,
    "y": DATE,
    "x": BINARY,
    "r": ArrayType(INT),
    "q": ArrayType(DOUBLE),
    "w": ArrayType(STRING),
    "p": MapType(STRING, INT),
}
_COLUMNS = {f"{first}_{letter}": kind for letter, kind in _TYPES.items() for first in "abc"}
EVENT = RecordType(_COLUMNS)
TEXT = RecordType({"s": STRING})
_BATCH = 120
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Difference(NamedTuple):
    """One value that Spark has otherwise. Times are microseconds and days since 1970."""

    form: Form
    kind: SqlType
    event: Mapping[str, Any]
    here: Any
    spark: Any

    def __str__(self) -> str:
        read = {name: value for name, value in self.event.items() if name in self.form.here}
        return f"{self.form.here} of {read}: {self.here!r}, in Spark {self.spark!r}"


def frame(session: SparkSession, events: Sequence[Mapping[str, Any]]) -> DataFrame:
    """The events for Spark; ``s`` alone is a text, other columns are as ``EVENT`` has them."""
    names = list(events[0])
    schema = ", ".join(f"{name} {SPARK_TYPES[name[-1]]}" for name in names)
    rows = [tuple(event[name] for name in names) for event in events]
    return session.createDataFrame(rows, schema).coalesce(1).localCheckpoint()


def compared(
    data: DataFrame, events: Sequence[Mapping[str, Any]], record: RecordType, forms: Sequence[Form]
) -> Iterator[Difference]:
    """What differs."""
    for start in range(0, len(forms), _BATCH):
        batch = forms[start : start + _BATCH]
        expressions = [parse(form.here) for form in batch]
        kinds = [check_types(e, record, {}) for e in expressions]
        texts = [_readable(form.spark, kind) for form, kind in zip(batch, kinds, strict=True)]
        answers = data.selectExpr(*(f"{text} AS c{n}" for n, text in enumerate(texts))).collect()
        for number, (form, e, kind) in enumerate(zip(batch, expressions, kinds, strict=True)):
            places = {path: place for place, path in enumerate(sorted(e.columns))}
            compute = bind(e, places, {}, record)
            for event, answer in zip(events, answers, strict=True):
                here = _plain(compute([event[path[0]] for path in places], ()))
                if not _same(here, spark := _plain(answer[number])):
                    yield Difference(form, kind, event, here, spark)


def _readable(text: str, kind: SqlType) -> str:
    """Python knows no times beyond the year 9999."""
    if kind == TIMESTAMP:
        return f"unix_micros({text})"
    return f"unix_date({text})" if kind == DATE else text


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return (value - _EPOCH) // _MICROSECOND
    if hasattr(value, "toordinal"):
        return value.toordinal() - _EPOCH.toordinal()
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return bytes(value) if isinstance(value, bytearray) else value


def _same(here: Any, spark: Any) -> bool:
    if type(here) is not type(spark):
        return False
    if isinstance(here, float):
        return here == spark or (math.isnan(here) and math.isnan(spark))
    if isinstance(here, list):
        return len(here) == len(spark) and all(map(_same, here, spark))
    return bool(here == spark)
