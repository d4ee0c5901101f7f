"""Values of every type for the comparison with Spark: ends of types, NULL, NaN, odd texts."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

_MICROSECOND = timedelta(microseconds=1)
_FIRST, _LAST = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC)
_LEAP = datetime(2024, 2, 29, 12, 34, 56, 789_123, UTC)
_TURNED = datetime(2024, 10, 27, 1, 30, tzinfo=UTC)


def _decimal(digits: int, scale: int = 18) -> Decimal:
    return Decimal((int(digits < 0), tuple(map(int, str(abs(digits)))), -scale))


#: By letter of :mod:`~tests.pattern.expressions.spark_forms`.
ENDS: Mapping[str, list[Any]] = {
    "i": [None, 0, 1, -1, 2, -2, 3, 7, -5, 12, 2**31 - 1, -(2**31), 100, 8],
    "l": [None, 0, 1, -1, 2, 7, -3, 2**63 - 1, -(2**63), 2**53 + 1, 2**31, -(2**31) - 1, 10**18],
    "f": [None, 0.0, -0.0, 0.5, -1.5, math.nan, math.inf, -math.inf, 16777216.0,
          0.10000000149011612],
    "d": [None, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 2.345, math.nan, math.inf, -math.inf, 1e300,
          5e-324,
          2147483647.5, 9.3e18, 1e-7, 123456789.125, 0.1, 9007199254740992.0],
    "m": [None, *map(Decimal, ("0.00", "1.00", "-1.00", "0.01", "99999999.99", "-99999999.99",
          "2.35")),
          Decimal("-2.25"), Decimal("7.00")],
    "n": [None, *map(_decimal, (0, 1, 10**18, -25 * 10**17, 10**38 - 1, 1 - 10**38)),
          Decimal("12345.678901234567890123"), _decimal(2350 * 10**15)],
    "s": [None, "", " ", "abc", "ABC", "a-b-c", "a_b%c", "-", "ab", "b", "  a b ", "é", "Straße 😀",
          "😀a", "aa11", "12", "x\ny", "a\\b", "2024-02-29", "true", "1e3", "abab", "ΟΔΟΣ ΑΣ."],
    "b": [None, True, False],
    "t": [None, _LEAP, _TURNED, _TURNED - timedelta(hours=1), datetime(1970, 1, 1, tzinfo=UTC),
          datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC), _FIRST, _LAST, datetime(2023, 8, 31,
          23, tzinfo=UTC),
          datetime(2024, 1, 31, tzinfo=UTC), datetime(2025, 2, 28, 12, 34, 57, tzinfo=UTC),
          datetime(2011, 12, 30, 10, tzinfo=UTC), datetime(1582, 10, 10, tzinfo=UTC)],
    "y": [None, date(2024, 2, 29), date(1970, 1, 1), date(1969, 12, 31), date.min, date.max,
          date(2023, 8, 31), date(2024, 1, 31), date(2025, 2, 28), date(1582, 10, 10), date(1900,
          1, 1)],
    "x": [None, b"", b"a", b"\x00\xff", b"\x80", b"ab"],
    "r": [None, [], [None], [1, 2, 3], [7, None, -1], [0], [2**31 - 1, -(2**31)]],
    "q": [None, [], [1.0, math.nan], [None, 0.5], [-0.0, math.inf], [2.345]],
    "w": [None, [], ["a", "abc"], [None, "b"], ["", "é"]],
    "p": [None, {}, {"abc": 1}, {"b": None}, {"": 0}, {"a-b-c": 5}],
}  # fmt: skip

SPARK_TYPES = {
    "i": "INT",
    "l": "BIGINT",
    "f": "DOUBLE",
    "d": "DOUBLE",
    "m": "DECIMAL(10,2)",
    "n": "DECIMAL(38,18)",
    "s": "STRING",
    "b": "BOOLEAN",
    "t": "TIMESTAMP",
    "y": "DATE",
    "x": "BINARY",
    "r": "ARRAY<INT>",
    "q": "ARRAY<DOUBLE>",
    "w": "ARRAY<STRING>",
    "p": "MAP<STRING,INT>",
}


def _bits(random: Random, most: int) -> int:
    whole = random.getrandbits(random.randint(0, most))
    return -whole - 1 if random.random() < 0.5 else whole


def _double(random: Random) -> float:
    if random.random() < 0.3:
        return float(struct.unpack("d", random.randbytes(8))[0])
    return float(
        round(random.uniform(-1, 1) * 10.0 ** random.randint(-5, 18), random.randint(0, 5))
    )


def _text(random: Random) -> str:
    return "".join(random.choices("aabbcé😀ß İΣς-_%1ZÄ\t\\", k=random.randint(0, 9)))


def _moment(random: Random) -> datetime:
    if random.random() < 0.4:
        return datetime(2020, 1, 1, tzinfo=UTC) + timedelta(seconds=random.randint(0, 2 * 10**8))
    return _FIRST + random.randint(0, (_LAST - _FIRST) // _MICROSECOND) * _MICROSECOND


def _several(of: Callable[[Random], Any]) -> Callable[[Random], list[Any]]:
    return lambda random: [of(random) for _ in range(random.randint(0, 4))]


RANDOM: Mapping[str, Callable[[Random], Any]] = {
    "i": lambda random: _bits(random, 31),
    "l": lambda random: _bits(random, 63),
    "f": lambda random: struct.unpack("f", struct.pack("f", random.uniform(-1e6, 1e6)))[0],
    "d": _double,
    "m": lambda random: _decimal(_bits(random, 33), 2),
    "n": lambda random: _decimal(_bits(random, 126)),
    "s": _text,
    "b": lambda random: random.random() < 0.5,
    "t": _moment,
    "y": lambda random: _moment(random).date(),
    "x": lambda random: random.randbytes(random.randint(0, 4)),
    "r": _several(lambda random: random.randint(-2, 4)),
    "q": _several(_double),
    "w": _several(_text),
    # Spark turns the order of several.
    "p": lambda random: {_text(random): random.randint(0, 9)},
}


def events(count: int, random: Random) -> list[dict[str, Any]]:
    """Events with ``a_``, ``b_`` and ``c_`` columns of every type: first pairs of ends of types
    in any order, then others."""
    pairs: dict[str, list[tuple[Any, Any]]] = {}
    for letter, ends in ENDS.items():
        pairs[letter] = [(a, b) for a in ends for b in ends]
        random.shuffle(pairs[letter])
    found = []
    for number in range(count):
        event: dict[str, Any] = {}
        for letter, ends in ENDS.items():
            of = pairs[letter]
            if number < max(len(of), count // 2):
                a, b = of[number % len(of)]
            else:
                a, b = RANDOM[letter](random), RANDOM[letter](random)
            c = random.choice(ends) if random.random() < 0.5 else RANDOM[letter](random)
            event |= {f"a_{letter}": a, f"b_{letter}": b, f"c_{letter}": c}
        found.append(event)
    return found


_SHAPES = (
    "2024-02-29", "2024-2-9", "2024-02", "2024", "+2024-02-29", "-0044-03-15", "0000-01-01",
    "2023-02-29", "10000-01-01", "999-01-01", "2024-13-01", "2024-00-10", "2024-1-32",
    "20240229", "2024-02-29 10:00:00", "2024-02-29T10:00:00", "2024-02-29 10",
    "2024-02-29 10:00", "2024-02-29 ", "2024-02-29T", "2024-02-29 1:2:3", "2024-02-29 24:00:00",
    "2024-02-29 10:60:00", "10:00:00", "T10:00", "2024-02-29 10:00:00.",
    "2024-02-29 10:00:00.123456789", "2024-02-29 10:00:00.5", "2024-02-29 10:00Z",
    "2024-02-29 10:00:00junk", "2024-02-29 junk", "2024-02-29x", "2024-02-29  10:0:0",
    "2024-02-29 10:00:00:00", "1582-10-10 00:00:00", "9999-12-31 23:59:59.999999", "0001-01-01",
    "2024-03-31 02:30:00 Europe/Berlin", "2024-10-27 02:30:00 Europe/Berlin",
    "2024-02-29 123:00:00",
)  # fmt: skip
_ZONES = (
    "Z", "z", "UTC", " UTC", " utc", "GMT", "UT", "+01", "+1", "+1:00", "+01:00", "-01:30",
    "+01:3", "+0130", "+01:00:30", "+18:00", "+18:01", "-19:00", "UTC+1", "GMT-02:00",
    "UT+01:30", " +01:00", " Europe/Berlin", "Europe/Berlin", " Nowhere/City", " PST", " CET",
    " EST", "[UTC]", "+", "+01:60", " America/New_York", " UTC+01", "+01:00 ", "+013", "+010030",
    "-00:00", " Z ", "UTCZ", "GMT0",
)  # fmt: skip
_NUMBERS = (
    "0", "1", "-1", "+1", " 7 ", "007", "1.", ".5", "1.5", "-.5", ".", "", " ", "-", "+", "1e3",
    "1E3", "1e", "e1", "1e400", "-1e400", "1e-400", "1d", "1f", "1.5D", "1L", "1l", "0x1F",
    "0x1p3", "1_000", "2147483647", "2147483648", "-2147483648", "-2147483649",
    "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
    "00000000000000000000000001", "1" * 38, "9" * 39, "0." + "0" * 30 + "1", "1e37", "1e38",
    "1e-18", "5e-19", "99999999.995", "99999999.994", "12 34", "NaN", "nan", " NaN ", "+NaN",
    "-nan", "Infinity", "inf", "-inf", "+Infinity", "-INFINITY", "infinit", "٣", "１", "1\u00a0",
    "\u20031", "1\x00", "\t1\n", "\x7f1", "1\x85", "−1", "1,5", "1e+5", "1e 5", "--1", "NaNd",
    "Infinityf", "1df", "1e3d", "0d", "d", "f", "1.e3", ".e3", "1..2", "1.2.3", "5e-324",
    "4.9e-325",
)  # fmt: skip
_TRUTHS = (
    "true", "TRUE", "tRue", " true ", "t", "T", "y", "yes", "YES", "1", "false", "f", "n", "no",
    "0", "2", "on", "off", "truee", "tr", "01", "1.0", "\ttrue\n", "true\x7f", "\u00a0true",
)  # fmt: skip


def odd_texts(count: int, random: Random) -> list[str | None]:
    """Texts for CASTs: of numbers, truths, days and times, and changes of these."""
    texts: list[str] = [*_SHAPES, *_NUMBERS, *_TRUTHS]
    texts += [f"2024-02-29 10:00:00{zone}" for zone in _ZONES]
    texts += [f"2024-02-29T10:00:00.25{zone}" for zone in _ZONES]
    texts += [f"2024-02-29{zone}" for zone in _ZONES[:9]]
    given = list(texts)
    while len(texts) < count:
        text = random.choice(given)
        for _ in range(random.randint(1, 2)):
            at = random.randint(0, len(text))
            change = random.choice("0123459 -+:.TZe\t\x00é")
            text = text[:at] + random.choice(["", change]) + text[at + random.randint(0, 1) :]
        texts.append(text)
    return [None, *texts]
