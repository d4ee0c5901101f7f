"""Values outside the output schemas' union travel as documented."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from uuid import UUID

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_cep.codecs.output.schemas import schema_text
from spark_cep.errors import OutputError
from spark_cep.matcher.findings.output_values import output_value

EAST = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (2**63 - 1, 2**63 - 1),
        (2**63, "9223372036854775808"),
        (1.5, 1.5),
        ("text", "text"),
        (b"\x00", b"\x00"),
        (bytearray(b"ab"), b"ab"),
        (Decimal("1E+3"), "1000"),
        (Decimal("12.340"), "12.340"),
        (date(2026, 1, 2), "2026-01-02"),
        (time(3, 4, 5), "03:04:05"),
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=EAST), "2026-01-02T01:04:05Z"),
        (datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC), "2026-01-02T03:04:05.000678Z"),
        (datetime(2026, 1, 2, 3, 4, 5), "2026-01-02T03:04:05"),
        (timedelta(days=1, seconds=1, microseconds=500_000), "PT86401.5S"),
        (timedelta(seconds=-3), "-PT3S"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ([1, "a", None], [1, "a", None]),
        ((Decimal("1.0"), date(2026, 1, 2)), ["1.0", "2026-01-02"]),
        ([[1], [2]], "[[1],[2]]"),
        ({"a": {"b": b"\x01"}, "c": [Decimal("2.50")]}, '{"a":{"b":"AQ=="},"c":["2.50"]}'),
        ({"x": float("nan"), "y": float("-inf")}, '{"x":"NaN","y":"-Infinity"}'),
        ({1: "é", None: 2}, '{"1":"é","null":2}'),
    ],
)
def test_conversion(value: object, expected: object) -> None:
    """Each type of Spark SQL has one form."""
    assert output_value(value) == expected


def test_unknown_type_is_refused() -> None:
    """A type that no Spark column has is an error that names it."""
    with pytest.raises(OutputError, match="type object "):
        output_value(object())


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.datetimes()
    | st.dates()
    | st.timedeltas()
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner)
)
MEASURES = next(
    field["type"]
    for field in json.loads(schema_text("match"))["fields"]
    if field["name"] == "measures"
)


@given(VALUES)
def test_every_value_fits_the_contract(value: object) -> None:
    """Whatever a column holds can be written and read with the public schema; text is JSON where
    the value was nested."""
    schema = fastavro.parse_schema(MEASURES)
    converted = output_value(value)
    body = io.BytesIO()
    fastavro.schemaless_writer(body, schema, {"m": converted})
    read = fastavro.schemaless_reader(io.BytesIO(body.getvalue()), schema, None)
    assert repr(read) == repr({"m": converted})
    if isinstance(value, Mapping):
        assert isinstance(converted, str)
        json.loads(converted)
