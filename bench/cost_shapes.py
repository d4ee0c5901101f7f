"""Shapes of rules whose cost must not grow faster than their events, and the events of each.

All events are of one key, a second apart, with the columns of ``EVENT``. A shape says what the
``number``-th of them is; ``closing`` ones come behind them, ``late`` seconds later, one a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spark_cep.pattern.types import DOUBLE, INT, STRING, RecordType

EVENT = RecordType(
    {"k": STRING, "kind": STRING, "v": INT, "amount": DOUBLE, "ip": STRING}, name="Event"
)
#: The number of closing events.
CLOSING = 5


def _of_kind(kind: str) -> Callable[[int], Mapping[str, Any]]:
    return lambda number: {
        "kind": kind,
        "v": number % 7,
        "amount": number % 11 / 4,
        "ip": f"10.0.0.{number % 3}",
    }


def _kinds(text: str) -> Callable[[int], Mapping[str, Any]]:
    """Events whose kinds are these letters, over and over."""
    return lambda number: _of_kind(text[number % len(text)])(number)


_OPENING, _ENDING = _of_kind("a"), _of_kind("b")


@dataclass(frozen=True)
class Shape:
    """A rule, its events, and those behind them: by default one that ends what ``a`` has begun."""

    name: str
    rule: str
    events: Callable[[int], Mapping[str, Any]] = _OPENING
    closing: Callable[[int], Mapping[str, Any]] = _ENDING
    late: int = 0

    @property
    def document(self) -> str:
        """The rule's document."""
        fields = f"id: {self.name}\nversion: 1\n"
        return fields + ("" if self.rule.startswith("sql:") else "key: k\n") + self.rule


def _steps(a: str, b: str = "kind = 'b'", rest: str = "within: 1 minute\n") -> str:
    """A loop of ``a``, then ``b``."""
    return f'pattern:\n- {{step: a, {a}}}\n- {{step: b, after: followed_by, where: "{b}"}}\n{rest}'


_GREEDY = "times: 3+, greedy: true"


def _loop(condition: str = "", more: str = _GREEDY) -> str:
    joined = f" AND {condition}" if condition else ""
    return _steps(f"where: \"kind = 'a'{joined}\", {more}")


def _sql(pattern: str, define: str, within: str = "") -> str:
    return (
        "sql: |\n  SELECT * FROM events MATCH_RECOGNIZE (\n    PARTITION BY k\n"  # noqa: S608  our own
        f"    MEASURES COUNT(*) AS n PATTERN ({pattern}) {within}\n    DEFINE {define}\n  )\n"
    )


STEPS: Sequence[Shape] = (
    Shape("one-step", "pattern:\n- {step: a, where: \"kind = 'a'\"}\n"),
    Shape("loop", _loop()),
    Shape("loop-not-greedy", _loop(more="times: 3+")),
    Shape("loop-consecutive", _loop(more="times: 3+, loop: consecutive")),
    Shape("loop-skip-past", _loop() + "after_match: skip_past_last_event\n", _kinds("aaaaaaab")),
    Shape("loop-no-window", _steps(f"where: \"kind = 'a'\", {_GREEDY}", rest=""), closing=_OPENING),
    Shape("loop-window", _steps(f"where: \"kind = 'a'\", {_GREEDY}", rest="within: 1 hour\n")),
    Shape("sum", _loop("SUM(a.v) < 1000000000")),
    Shape("average", _loop("COALESCE(AVG(a.amount), 0) < 5")),
    Shape("spread", _loop("COALESCE(STDDEV(a.amount), 0) < 5")),
    Shape("max-text", _loop("COALESCE(MAX(a.ip), '') <= '2'")),
    Shape("distinct-texts", _loop("COUNT(DISTINCT a.ip) <= 3")),
    Shape("distinct-numbers", _loop("COUNT(DISTINCT a.v) <= 7")),
    Shape("first-and-last", _loop("v >= COALESCE(FIRST(a.v), 0) OR v >= LAST(a.v, 2)")),
    Shape("collect", _loop("NOT ARRAY_CONTAINS(COLLECT(a.ip, 10), 'x')")),
    Shape("aggregate-after-loop", _steps("where: \"kind = 'a'\", times: 1+", "SUM(a.v) = v")),
    Shape(
        "absence",
        "pattern:\n- {step: a, where: \"kind = 'a'\"}\n"
        "- {step: b, after: not_followed_by, where: \"kind = 'b'\"}\nwithin: 1 minute\n",
    ),
)
SQL: Sequence[Shape] = (
    Shape(
        "sql-distinct",
        _sql(
            "fail{3,} ok", "fail AS kind = 'a' AND COUNT(DISTINCT fail.ip) <= 3, ok AS kind = 'b'"
        ),
        closing=_of_kind("x"),
    ),
    Shape(
        "sql-max-text",
        _sql("fail{3,} ok", "fail AS kind = 'a' AND MAX(fail.ip) < '2', ok AS kind = 'b'"),
        closing=_of_kind("x"),
    ),
    Shape(
        "sql-array",
        _sql(
            "fail{3,} ok",
            "fail AS kind = 'a' AND CARDINALITY(ARRAY_AGG(fail.ip)) < 2000, ok AS kind = 'b'",
        ),
        closing=_of_kind("x"),
    ),
    Shape(
        "sql-sum",
        _sql("a+ b", "a AS kind = 'a' AND SUM(a.v) < 1000000000, b AS kind = 'b'"),
        closing=_of_kind("x"),
    ),
    Shape(
        "sql-last",
        _sql("a+ b", "a AS kind = 'a' AND COALESCE(LAST(a.v, 1), 0) < 9, b AS kind = 'b'"),
        closing=_of_kind("x"),
    ),
    Shape(
        "sql-first",
        _sql("a+ b", "a AS kind = 'a' AND FIRST(a.v) = 0, b AS kind = 'b'"),
        lambda number: {**_OPENING(number), "v": number},
        closing=_of_kind("x"),
    ),
    Shape("sql-nested", _sql("(a{0,44}){0,44} b", "a AS kind = 'a', b AS kind = 'b'")),
    Shape(
        "sql-alternatives",
        _sql(
            f"({'|'.join(f'x{n}' for n in range(200))})+ z",
            ", ".join(f"x{n} AS v = {n}" for n in range(200)) + ", z AS kind = 'z'",
        ),
    ),
    Shape(
        "sql-timeouts",
        _sql("a x*? b", "a AS kind = 'a', b AS kind = 'b'", "WITHIN INTERVAL '1' HOUR"),
    ),
    Shape(
        "sql-late",
        _sql(
            "a x*? b",
            "a AS kind = 'a', x AS SUM(x.v) < 1000000000, b AS kind = 'b'",
            "WITHIN INTERVAL '20' MINUTE",
        ),
        late=3_600,
    ),
    Shape("sql-drop", _sql("h l", "h AS kind = 'a', l AS amount < 0.5 * h.amount")),
)
SHAPES: Sequence[Shape] = (*STEPS, *SQL)


def chosen(only: Sequence[str]) -> Sequence[Shape]:
    """The shapes whose names have one of these parts. Raises ValueError where one is in none."""
    for part in only:
        if not any(part in shape.name for shape in SHAPES):
            names = ", ".join(shape.name for shape in SHAPES)
            raise ValueError(f"no shape has {part!r} in its name; there are {names}")
    return [shape for shape in SHAPES if any(part in shape.name for part in only)]
