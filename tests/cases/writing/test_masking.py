"""Masked columns have other values, the same for the same, of the same types."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from spark_cep.cases.writing.masking import Masking


def test_the_same_by_the_same() -> None:
    """Equal values stay equal, different ones different; columns count by themselves."""
    masking = Masking(["user", "ip", "home.street"])
    events: list[dict[str, Any]] = [
        {"user": "ann", "ip": "10.0.0.1", "kind": "a", "home": {"street": "A", "zip": 1}},
        {"user": "bob", "ip": "10.0.0.1", "kind": "a", "home": {"street": "B", "zip": 1}},
        {"user": "ann", "ip": None, "kind": "b", "home": None},
    ]
    assert [masking.masked(each) for each in events] == [
        {"user": "mask-1", "ip": "mask-1", "kind": "a", "home": {"street": "mask-1", "zip": 1}},
        {"user": "mask-2", "ip": "mask-1", "kind": "a", "home": {"street": "mask-2", "zip": 1}},
        {"user": "mask-1", "ip": None, "kind": "b", "home": None},
    ]
    assert masking.met == {"user", "ip", "home.street"}
    assert events[0]["user"] == "ann"


def test_types_are_kept() -> None:
    """A replacement is of its value's type, and none shows the value."""
    moment = datetime(1980, 5, 17, 8, tzinfo=UTC)
    values: list[Any] = [
        "x",
        17,
        1.5,
        Decimal("2.5"),
        b"x",
        moment,
        date(1980, 5, 17),
        [1, 1, 2],
        {"a": "x"},
    ]
    masking = Masking(["v"])
    for value in values:
        masked = masking.masked({"v": value})["v"]
        assert type(masked) is type(value)
        assert masked != value
    assert masking.masked({"v": True}) == {"v": True}
