"""Match ids and row ids: stable across releases, and different for whatever differs."""

from __future__ import annotations

from dataclasses import replace

from spark_cep.match_ids import match_id, row_id
from spark_cep.model import Coordinates, MatchRow, TakenEvent


def taken(topic: str, partition: int, offset: int) -> TakenEvent:
    """An event by its coordinates."""
    return TakenEvent(Coordinates(topic, partition, offset), time=0)


STEPS = {"a": [taken("in", 0, 7)], "b": [taken("in", 1, 3), taken("in", 1, 4)]}


def test_golden_value() -> None:
    """The id of a known match never changes: consumers recognise matches by it."""
    assert match_id("fraud", 3, "k1", STEPS) == "3a95ddf20566136c01b169b8bf2f49f2"


def test_order_of_steps_and_empty_steps_do_not_matter() -> None:
    """The mapping's order and steps without events leave the id as it is."""
    turned = {"c": [], "b": STEPS["b"], "a": STEPS["a"]}
    assert match_id("fraud", 3, "k1", turned) == match_id("fraud", 3, "k1", STEPS)


def test_what_the_rule_emits_does_not_matter() -> None:
    """Columns, payload and time are not part of the id."""
    full = TakenEvent(Coordinates("in", 0, 7), 99, {"x": 1}, b"bytes", "T")
    assert match_id("r", 1, None, {"a": [full]}) == match_id("r", 1, None, {"a": STEPS["a"]})


def test_every_part_counts() -> None:
    """Rule, version, key (null is not empty), step, topic, partition, offset and order count."""
    ids = [
        match_id("fraud", 3, "k1", STEPS),
        match_id("fraud2", 3, "k1", STEPS),
        match_id("fraud", 4, "k1", STEPS),
        match_id("fraud", 3, None, STEPS),
        match_id("fraud", 3, "", STEPS),
        match_id("fraud", 3, "k1", {"a": STEPS["a"]}),
        match_id("fraud", 3, "k1", {"a": STEPS["b"], "b": STEPS["a"]}),
        match_id("fraud", 3, "k1", {"a": STEPS["a"], "b": STEPS["b"][::-1]}),
        match_id("fraud", 3, "k1", {"a": [taken("on", 0, 7)], "b": STEPS["b"]}),
        match_id("fraud", 3, "k1", {"a": [taken("in", 1, 7)], "b": STEPS["b"]}),
        match_id("fraud", 3, "k1", {"a": [taken("in", 0, 8)], "b": STEPS["b"]}),
    ]
    assert len(set(ids)) == len(ids)


ROW = MatchRow("fraud", 3, "k1", "ab" * 16, 2, "A", taken("in", 1, 4), {"x": 1})


def test_golden_row_id() -> None:
    """The id of a known row never changes: consumers recognise rows by it."""
    assert row_id(ROW) == "20d5d2ded2c329b5ab8ef71208f2457f"
    assert row_id(replace(ROW, match_id=None)) == "7f957a2252c918cde613101a5e161a2f"


def test_what_does_not_make_a_row() -> None:
    """Columns, variable, and what else is known of the event are not part of it."""
    event = TakenEvent(ROW.event.at, 99, {"x": 1}, b"bytes", "T")
    other = replace(ROW, columns={}, variable=None, event=event)
    assert row_id(other) == row_id(ROW)


def test_every_part_of_a_row_counts() -> None:
    """Rule, version, key and match id (null is not empty), row number and coordinates count."""
    rows = [
        ROW,
        replace(ROW, rule_id="fraud2"),
        replace(ROW, rule_version=4),
        replace(ROW, key=None),
        replace(ROW, key=""),
        replace(ROW, match_id=None),
        replace(ROW, match_id=""),
        replace(ROW, match_id="cd" * 16),
        replace(ROW, key=None, match_id="k1"),
        replace(ROW, row=3),
        replace(ROW, event=taken("on", 1, 4)),
        replace(ROW, event=taken("in", 0, 4)),
        replace(ROW, event=taken("in", 1, 5)),
    ]
    assert len({row_id(row) for row in rows}) == len(rows)
