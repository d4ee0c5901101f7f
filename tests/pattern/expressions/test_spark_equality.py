"""Python and Spark compute the same: every sample expression, and random ones, on every event."""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_cep.pattern.expressions import Expression, ExpressionError, check_types, parse
from spark_cep.pattern.types import NULL, TIMESTAMP, UNKNOWN
from tests.pattern.expressions.random_text import random_chain, random_expressions
from tests.pattern.expressions.samples import (
    COLUMNS,
    EVENT,
    EVENTS,
    EXPRESSIONS,
    SPARK_SCHEMA,
    in_python,
)
from tests.pattern.expressions.spark_sql import to_spark_sql

pytestmark = pytest.mark.spark
BATCH = 60
RANDOM_EXPRESSIONS = 800
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> Any:
    """The sample events."""
    rows = [tuple(event[name] for name in COLUMNS) for event in EVENTS]
    return spark.createDataFrame(rows, SPARK_SCHEMA).coalesce(1).localCheckpoint()


def quoted(path: Sequence[str]) -> str:
    """A column path as Spark SQL."""
    return ".".join(f"`{part}`" for part in path)


def in_spark(frame: Any, expressions: Sequence[Expression]) -> list[tuple[str, list[Any]]]:
    """Type and values on every event, computed by Spark."""
    texts = []
    for e in expressions:
        text = to_spark_sql(e, quoted, EVENT)
        texts.append(f"unix_micros({text})" if check_types(e, EVENT, {}) == TIMESTAMP else text)
    selected = frame.selectExpr(*(f"{text} AS c{n}" for n, text in enumerate(texts)))
    kinds = [field.dataType.simpleString().upper() for field in selected.schema]
    rows = selected.collect()
    return [(kind, [row[number] for row in rows]) for number, kind in enumerate(kinds)]


def comparable(value: Any) -> Any:
    """A value with its Python type; NaN as text, times in microseconds, zeros without sign."""
    if isinstance(value, float) and value != value:  # noqa: PLR0124  # NaN
        return "NaN"
    if isinstance(value, datetime):
        return int, (value - _EPOCH) // timedelta(microseconds=1)
    if isinstance(value, list):
        return [comparable(item) for item in value]
    return type(value), bytes(value) if isinstance(value, bytearray) else value


def differences(frame: Any, expressions: Sequence[Expression]) -> list[str]:
    """What differs between the two evaluators, in words."""
    found = []
    for start in range(0, len(expressions), BATCH):
        batch = expressions[start : start + BATCH]
        for e, (kind, theirs) in zip(batch, in_spark(frame, batch), strict=True):
            expected = check_types(e, EVENT, {})
            if (
                expected not in (NULL, UNKNOWN, TIMESTAMP)
                and str(expected).replace(" ", "") != kind
            ):
                found.append(f"{e.canonical}: typed {expected}, in Spark {kind}")
            for number, (ours, spark) in enumerate(zip(in_python(e), theirs, strict=True)):
                if comparable(ours) != comparable(spark):
                    found.append(f"{e.canonical} on event {number}: {ours!r}, in Spark {spark!r}")
    return found


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_samples(frame: Any, ansi: str) -> None:
    """Every sample expression has the same type and values, in ANSI mode and out of it."""
    frame.sparkSession.conf.set("spark.sql.ansi.enabled", ansi)
    assert differences(frame, [parse(text) for text in EXPRESSIONS]) == []


@pytest.mark.parametrize(("ansi", "seed"), [("true", 1), ("false", 2)])
def test_random_expressions(frame: Any, ansi: str, seed: int) -> None:
    """Random well-typed expressions have the same type and values."""
    frame.sparkSession.conf.set("spark.sql.ansi.enabled", ansi)
    texts = random_expressions(random.Random(seed), RANDOM_EXPRESSIONS)
    assert differences(frame, [parse(text) for text in texts]) == []


def test_operators_bind_as_in_spark(frame: Any) -> None:
    """Spark reads a text and its canonical form as the same tree: nothing binds otherwise here."""
    parser = frame.sparkSession._jsparkSession.sessionState().sqlParser()

    def tree(text: str) -> str:
        return str(parser.parseExpression(text).toString()).replace("NOT isnull", "isnotnull")

    generator, accepted = random.Random(3), 0
    for _ in range(4000):
        text = random_chain(generator)
        try:
            canonical = parse(text).canonical
        except ExpressionError:
            continue
        accepted += 1
        assert (text, tree(text)) == (text, tree(canonical))
    assert accepted > 1000


def test_hostile_text_stays_text(frame: Any) -> None:
    """Quotes, escapes and variables in strings mean themselves, whatever the parser's settings."""
    conf = frame.sparkSession.conf
    text = "'\\' OR 1=1 -- ${spark.app.name} ${env:HOME} $' = '' OR \"`\\\\\" = '`\\\\'"
    e = parse(text)
    for escaped in ("false", "true"):
        conf.set("spark.sql.parser.escapedStringLiterals", escaped)
        ((_, values),) = in_spark(frame, [e])
        assert set(values) == {True}
    conf.set("spark.sql.parser.escapedStringLiterals", "false")


def test_case_mappings_of_every_letter(frame: Any) -> None:
    """UPPER and LOWER agree on every letter that both Unicode versions know."""
    import unicodedata

    letters = [
        chr(code)
        for code in range(sys.maxunicode + 1)
        if not 0xD800 <= code < 0xE000 and unicodedata.category(chr(code)) != "Cn"
    ]
    session = frame.sparkSession
    rows = session.createDataFrame([(letter,) for letter in letters], "s STRING")
    mapped = rows.selectExpr("s", "upper(s) AS u", "lower(s) AS l").collect()
    wrong = [(r.s, r.u, r.l) for r in mapped if (r.s.upper(), r.s.lower()) != (r.u, r.l)]
    newer = [case for case in wrong if any(unicodedata.category(c) == "Cn" for c in "".join(case))]
    assert wrong == newer
