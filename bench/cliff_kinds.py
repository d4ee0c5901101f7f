"""The kinds of condition that are measured, each next to the plainest rule of its shape.

All kinds of a shape choose the same events with other columns and means (``cliff_events.py``), so
they must find the same matches and timeouts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any

from bench.cliff_events import FIRST_DAY, HIGH, LOW

#: The least that a kind may be of the plain rule; decimals of up to 18 digits are numbers as any.
AIM, AIM_OF_DECIMAL = 0.5, 0.8
_BESIDE = 20
_KEY = "{key}"


class Shape(StrEnum):
    """What kinds have in common but for their conditions."""

    PAIR = "a low event, then a high one"
    LOOP = "two low events, then a high one"
    OPEN = "a low event, then one that is higher by 880: nothing can be left out early"
    AMONG = "a low event, then a high one, among 20 plain rules"


@dataclass(frozen=True)
class Kind:
    """One kind of condition: what low and high events must meet. In ``key``, ``{key}`` stands for
    the workload's key."""

    name: str
    low: str
    high: str
    shape: Shape = Shape.PAIR
    aim: float = AIM
    key: tuple[str, ...] = (_KEY,)
    measures: dict[str, str] = field(default_factory=dict)
    types: tuple[str, str] | None = None
    """Record types of low and high events, in a topic that has several."""

    def documents(self, key: str) -> Iterator[str]:
        """The rules as JSON, for events with that key."""
        keys = [part.replace(_KEY, key) for part in self.key]
        yield json.dumps(self._document("measured", keys, self.low, self.high))
        if self.shape is Shape.AMONG:
            for n in range(_BESIDE):
                yield json.dumps(self._document(f"plain-{n}", [key], f"number = {n}", _PLAIN[1]))

    def _document(self, name: str, key: list[str], low: str, high: str) -> dict[str, Any]:
        steps: list[dict[str, Any]] = [
            {"step": "a", "where": low},
            {"step": "b", "after": "followed_by", "where": high},
        ]
        if self.shape is Shape.LOOP:
            steps[0]["times"] = 2
        if self.types is not None:
            for step, of in zip(steps, self.types, strict=True):
                step["of_type"] = of
        return {
            "id": name,
            "key": key,
            "pattern": steps,
            "within": "1 minute",
            "after_match": "skip_past_last_event",
            "emit": {"measures": self.measures},
        }


_PLAIN = f"number < {LOW}", f"number >= {HIGH}"
_OPEN_PLAIN = f"number - LAST(a.number) > {HIGH - LOW}"

#: The plainest rule of each shape.
PLAIN = {
    shape: Kind(f"plain: {shape}", low, _OPEN_PLAIN if shape is Shape.OPEN else high, shape)
    for low, high in [_PLAIN]
    for shape in Shape
}


def _compared(name: str, column: str, low: object, high: object, aim: float = AIM) -> Kind:
    return Kind(name, f"{column} < {low}", f"{column} >= {high}", aim=aim)


def _equal(name: str, value: str, low: str = "'low'", high: str = "'high'") -> Kind:
    return Kind(name, f"{value} = {low}", f"{value} = {high}")


def _looking_back(name: str, also: str, aim: float = AIM) -> Kind:
    """A high event that ``also`` meets what every high one does."""
    return Kind(f"look-back, {name}", _PLAIN[0], f"{_PLAIN[1]} AND {also}", aim=aim)


def _open(name: str, high: str, aim: float = AIM) -> Kind:
    return Kind(f"look-back alone, {name}", _PLAIN[0], high, Shape.OPEN, aim)


def _aggregate(name: str, also: str, aim: float = AIM) -> Kind:
    return Kind(f"aggregate, {name}", _PLAIN[0], f"{_PLAIN[1]} AND {also}", Shape.LOOP, aim)


def _measure(name: str, expression: str) -> Kind:
    return Kind(f"measure, {name}", *_PLAIN, measures={"value": expression})


def _day(level: int) -> str:
    return f"{FIRST_DAY + timedelta(days=level):%Y-%m-%d}"


def _millis(level: int) -> int:
    return round((FIRST_DAY + timedelta(days=level)).timestamp() * 1000)


_NUMBERS = ", ".join(map(str, range(LOW)))
_AS_NUMBER = "CASE WHEN band = 'LOW' THEN 1 WHEN band = 'HIGH' THEN 2 ELSE 0 END"
_BY_GRADE = "CASE WHEN LAST(a.grade) = 'low' THEN LAST(a.real) ELSE 1e9 END"

_TYPES = [
    _compared("BIGINT", "big", LOW * 10**10, HIGH * 10**10),
    _compared("FLOAT", "single", "20D", "900D"),
    _compared("DOUBLE", "real", "20D", "900D"),
    Kind("BOOLEAN", "is_low", "is_high"),
    _equal("STRING =", "grade"),
    _compared("order of texts", "rank", "'rank-0020'", "'rank-0900'"),
    _compared("DECIMAL(12, 2)", "exact", LOW, HIGH, AIM_OF_DECIMAL),
    _compared("DECIMAL(38, 10)", "wide", f"{LOW}{'0' * 15}", f"{HIGH}{'0' * 15}"),
    _compared("DATE", "day", f"DATE '{_day(LOW)}'", f"DATE '{_day(HIGH)}'"),
    _compared("TIMESTAMP", "moment", f"TIMESTAMP '{_day(LOW)}'", f"TIMESTAMP '{_day(HIGH)}'"),
    _equal("enum", "band", "'LOW'", "'HIGH'"),
    _equal("nested", "part.grade"),
    _equal("nullable nested", "perhaps.grade"),
    Kind("ARRAY_CONTAINS", "ARRAY_CONTAINS(tags, 'low')", "ARRAY_CONTAINS(tags, 'high')"),
    _equal("array element", "tags[0]"),
    _equal("map value", "attributes['k']"),
    _equal("bytes", "raw", "raw_low", "raw_high"),
    Kind("two-column key", *_PLAIN, key=(_KEY, "region")),
    Kind("expression key", *_PLAIN, key=(f"UPPER({_KEY})",)),
    Kind("several record types", *_PLAIN, types=("Early", "Late")),
]
_FUNCTIONS = [
    _equal("UPPER", "UPPER(grade)", "'LOW'", "'HIGH'"),
    _equal("SUBSTRING", "SUBSTRING(band, 1, 1)", "'L'", "'H'"),
    _equal("LENGTH", "LENGTH(marks)", "1", "3"),
    _equal("CONCAT", "CONCAT(grade, '-', band)", "'low-LOW'", "'high-HIGH'"),
    _equal("TRIM", "TRIM(padded)"),
    _compared("REPLACE", "REPLACE(rank, 'rank-', 'r')", "'r0020'", "'r0900'"),
    _compared("arithmetic", "number * 2 + 1", 2 * LOW + 1, 2 * HIGH + 1),
    _compared("arithmetic with DECIMAL", "exact * 1.19", "23.8", 1071, AIM_OF_DECIMAL),
    _compared("ROUND", "ROUND(real)", "20D", "900D"),
    _compared("ABS", "ABS(0 - number)", LOW, HIGH),
    # The roots of 20 and 900, and of the values next to them, have room for this.
    _compared("SQRT", "SQRT(real)", "4.45D", "30D"),
    _equal("HOUR", "HOUR(moment)", "1", "23"),
    _equal("HOUR in a time zone", "HOUR(moment, 'Europe/Berlin')", "2", "1"),
    _compared(
        "INTERVAL",
        "moment - INTERVAL 1 DAY",
        f"TIMESTAMP '{_day(LOW - 1)}'",
        f"TIMESTAMP '{_day(HIGH - 1)}'",
    ),
    _compared("UNIX_MILLIS", "UNIX_MILLIS(moment)", _millis(LOW), _millis(HIGH)),
    _compared("DATEDIFF", f"DATEDIFF(day, DATE '{_day(0)}')", LOW, HIGH),
    _compared("CAST of text to INT", "CAST(digits AS INT)", LOW, HIGH),
    _compared("CAST to DECIMAL", "CAST(number AS DECIMAL(9, 1))", LOW, HIGH),
    _compared("CAST to STRING", "CAST(number + 10000 AS STRING)", "'10020'", "'10900'"),
    _equal("CASE", _AS_NUMBER, "1", "2"),
    _equal("COALESCE", "COALESCE(perhaps.grade, 'none')"),
    Kind("LIKE, prefix", "label LIKE 'pay-low%'", "label LIKE 'pay-high%'"),
    Kind("LIKE, inner wildcards", "label LIKE 'p%-low-%eu'", "label LIKE 'p%-high-%eu'"),
    Kind("RLIKE", "label RLIKE '-low-[0-9]+-'", "label RLIKE '-high-[0-9]+-'"),
    _equal("REGEXP_EXTRACT", "REGEXP_EXTRACT(label, 'pay-([a-z]+)-', 1)"),
    Kind("ILIKE", "label ILIKE 'PAY-LOW%'", "label ILIKE 'PAY-HIGH%'"),
    _equal("SPLIT", "SPLIT(label, '-')[1]"),
    _equal("INSTR", "INSTR(label, 'w-') + 2 * INSTR(label, 'gh-')", "7", "14"),
    _compared("LN", "LN(real)", "2.9957D", "6.8024D"),
    _compared("SIN", "SIN(real / 1000)", "0.02D", "0.7833D"),
    _compared("POWER", "POWER(real, 2)", "400D", "810000D"),
    Kind(
        "EXISTS over an array",
        "EXISTS(tags, tag -> tag = 'low')",
        "EXISTS(tags, tag -> tag = 'high')",
    ),
    Kind(
        "IN, 3 texts", "grade IN ('low', 'lower', 'lowest')", "grade IN ('high', 'higher', 'top')"
    ),
    Kind("IN, 20 numbers", f"number IN ({_NUMBERS})", _PLAIN[1]),
]
_LOOK_BACKS = [
    _looking_back("DOUBLE", "real > LAST(a.real)"),
    _looking_back("DECIMAL(12, 2)", "exact > LAST(a.exact)", AIM_OF_DECIMAL),
    _looking_back("DECIMAL(38, 10)", "wide > LAST(a.wide)"),
    _looking_back("text", "grade <> LAST(a.grade)"),
    _looking_back("order of texts", "rank > LAST(a.rank)"),
    _looking_back("TIMESTAMP", "moment > LAST(a.moment)"),
    _looking_back("nested", "part.grade <> LAST(a.part.grade)"),
    _looking_back("function", "UPPER(grade) <> UPPER(LAST(a.grade))"),
    _looking_back("CASE", f"real > {_BY_GRADE}"),
    _open("DOUBLE", "real - LAST(a.real) > 880D"),
    _open("DECIMAL(12, 2)", "exact - LAST(a.exact) > 880", AIM_OF_DECIMAL),
    _open("DECIMAL(38, 10)", f"wide - LAST(a.wide) > {HIGH - LOW}{'0' * 15}"),
    _open("text", "rank > LAST(a.higher_rank)"),
    _open("function", "ROUND(real - LAST(a.real)) > 880D"),
    _open("CASE", "number > CASE WHEN LAST(a.number) < 0 THEN 0 ELSE LAST(a.number) + 880 END"),
    _aggregate("SUM of INT", "SUM(a.number) < 1000"),
    _aggregate("SUM of DOUBLE", "SUM(a.real) < 1000D"),
    _aggregate("SUM of DECIMAL", "SUM(a.exact) < 1000", AIM_OF_DECIMAL),
    _aggregate("AVG of DOUBLE", "AVG(a.real) < real"),
    _aggregate("AVG of DECIMAL", "AVG(a.exact) < exact", AIM_OF_DECIMAL),
    _aggregate("MIN", "MIN(a.number) < number"),
    _aggregate("MIN of text", "MIN(a.rank) < rank"),
    _aggregate("COUNT", "COUNT(a.*) = 2"),
    _aggregate("COUNT DISTINCT", "COUNT(DISTINCT a.grade) = 1"),
    _aggregate("COLLECT", "SIZE(COLLECT(a.grade, 10)) = 2"),
    _aggregate("STDDEV", "STDDEV(a.real) < 1000D"),
    _measure("SUM of DOUBLE", "SUM(a.real) + SUM(b.real)"),
    _measure("SUM of DECIMAL", "SUM(a.exact) + SUM(b.exact)"),
    _measure("text", "LAST(b.grade)"),
    _measure("function", "UPPER(LAST(b.grade))"),
]
_ONE_EACH = (
    "DECIMAL(12, 2)",
    "map value",
    "UPPER",
    "RLIKE",
    "look-back, DECIMAL(12, 2)",
    "look-back, function",
)
_ALONE = (*_TYPES, *_FUNCTIONS, *_LOOK_BACKS)

#: All of them; names are unique.
KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        *_ALONE,
        *(
            replace(kind, name=f"{kind.name}, among 20 plain rules", shape=Shape.AMONG, aim=0.9)
            for kind in _ALONE
            if kind.name in _ONE_EACH
        ),
    )
}
