"""Scalars of JSON in compiled loops are what Python and PyArrow make of them."""

from __future__ import annotations

import json
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spark_cep.codecs.json.loops import scalars
from spark_cep.pipeline.decode.iso_times import micros_of


def data_of(text: str | bytes) -> Any:
    """Bytes as loops take them."""
    return np.frombuffer(text.encode() if isinstance(text, str) else text, np.uint8)


NUMBERS = [
    "0", "-0", "7", "-7", "10", "100", "1.5", "1.0", "0.001", "1e3", "1E+3", "1e-3", "12.50e1",
    "9223372036854775807", "-9223372036854775808", "9223372036854775808", "0.1", "123456789.125",
    "1" + "0" * 30, "0." + "0" * 30 + "5", "123456789012345678901234567890", "4503599627370497",
    "1e22", "1e23", "9007199254740993", "1e999999999999", "0e99999", "0.10", "17.0e-1",
]  # fmt: skip


@pytest.mark.parametrize("text", NUMBERS)
def test_numbers(text: str) -> None:
    """Digits and power of ten are exact, and so is a double where it is told."""
    data = data_of(f"{text},")
    at, below, number, count, power = scalars.number_at(data, 0, len(data))
    assert at == len(text)
    if count <= scalars.MOST_DIGITS and power < 400:
        assert Decimal((int(below), tuple(map(int, str(number))), int(power))) == Decimal(text)
        value, fits = scalars.whole(below, np.uint64(number), count, power, 63)
        exact = Decimal(text)
        assert fits == (exact == exact.to_integral_value() and -(2**63) <= exact < 2**63)
        if fits:
            assert value == int(exact)
    found, exact_one = scalars.exact_double(below, np.uint64(number), count, power)
    if exact_one:
        assert (found, np.signbit(found)) == (float(text), np.signbit(float(text)))


def test_random_numbers() -> None:
    """The same, for many."""
    random = Random(1)
    told = 0
    for _ in range(2_000):
        text = random.choice(
            [
                repr(random.uniform(-1e6, 1e6)),
                f"{random.randrange(10**12) / 100:.2f}",
                str(random.randrange(-(10**20), 10**20)),
                f"{random.randrange(1000)}e{random.randrange(-30, 30)}",
            ]
        )
        data = data_of(text)
        at, below, number, count, power = scalars.number_at(data, 0, len(data))
        assert at == len(data)
        found, exact_one = scalars.exact_double(below, np.uint64(number), count, power)
        told += exact_one
        assert not exact_one or found == float(text)
    assert told > 500


@pytest.mark.parametrize("text", ["", "-", "+1", "01", "1.", ".5", "1e", "1e+", "a", "-a", "00"])
def test_no_numbers(text: str) -> None:
    """What JSON does not write."""
    data = data_of(text)
    assert scalars.number_at(data, 0, len(data))[0] == -1


TIMES = [
    "2026-01-31T12:00:00Z", "2026-01-31 12:00:00", "2026-01-31T12:00:00.123Z", "2026-01-31",
    "2026-01-31T12:00:00.123456789+02:00", "2026-01-31T12:00:00-0330", "2026-01-31T12:00:00+05",
    "2024-02-29T00:00:00Z", "1969-12-31T23:59:59.999999Z", "0001-01-01T00:00:00Z", "2026-01-31T12",
    "9999-12-31T23:59:59Z", "2026-01-31T12:30", "2026-01-31T12:30Z", "1900-02-28T01:02:03.4",
    "2025-02-29", "2026-13-01", "2026-00-10", "2026-01-32", "2026-01-31T24:00:00", "2026-1-31",
    "2026-01-31T12:60:00", "2026-01-31T12:00:61", "2026-01-31T12:00:00X", "yesterday", "",
    "2026-01-31T", "2026-01-31T12:00:00.Z", "2026-01-31T12:00:00+99:00", "20260131",
    "2026-01-31t12:00:00", "2026-01-31T12:00:00 Z",
]  # fmt: skip


@pytest.mark.parametrize("text", TIMES)
def test_times_are_those_of_event_times(text: str) -> None:
    """A column of times has the same ones as an event time in ISO 8601."""
    data = data_of(text)
    micros, is_one = scalars.micros_at(data, 0, len(data))
    (expected,), (known,) = micros_of(pa.array([text]))
    assert is_one == known
    if known:
        assert micros == expected


@pytest.mark.parametrize(
    "text", ["plain", "", "ü – 日本", 'quote " and \\ and /', "\b\f\n\r\t", "ü😀\x01", "😀"]
)
def test_strings(text: str) -> None:
    """Escapes become what Python makes of them, in both ways of writing."""
    for ascii_only in (True, False):
        written = json.dumps(text, ensure_ascii=ascii_only)
        data = data_of(written)
        end, properties = scalars.string_end(data, 1, len(data))
        assert end == len(data) - 1
        out = np.zeros(len(data), np.uint8)
        to = scalars.unescape(data, 1, end, out, 0)
        assert out[:to].tobytes().decode() == json.loads(written) == text
        assert bool(properties & scalars.ESCAPED) == ("\\" in written)


@pytest.mark.parametrize("text", ['a\nb"', '\\x"', '\\u12g4"', "open", "\\", '\\u123"'])
def test_no_strings(text: str) -> None:
    """Control characters, unknown escapes, no end."""
    data = data_of(text)
    assert scalars.string_end(data, 0, len(data))[0] == -1


@pytest.mark.parametrize("text", ["\\ud800", "\\udc00", "\\ud800\\u0041", "\\ud800x"])
def test_half_a_character(text: str) -> None:
    """One half of a pair of surrogates is no text."""
    data = data_of(text)
    assert scalars.unescape(data, 0, len(data), np.zeros(40, np.uint8), 0) == -1


@pytest.mark.parametrize(
    ("text", "size"),
    [("", 0), ("AAAA", 3), ("AAA=", 2), ("AA==", 1), ("A===", -1), ("AAA", -1), ("A*AA", -1),
     ("AA=A", -1), ("+/+/", 3)],
)  # fmt: skip
def test_base64(text: str, size: int) -> None:
    """The number of bytes that a text stands for."""
    data = data_of(text)
    assert scalars.base64_bytes(data, 0, len(data)) == size
