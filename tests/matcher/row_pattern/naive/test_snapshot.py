"""State that is stored is read back as it was, or refused."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from spark_cep.compiler.row_pattern import RowPatternPlan, plan_query
from spark_cep.errors import StateError
from spark_cep.matcher.row_pattern import KeyState, RowPatternMatcher
from spark_cep.matcher.row_pattern.naive.snapshot import decode, encode
from spark_cep.packing import pack, unpack
from spark_cep.pattern.sql import load_query

from tests.matcher.row_pattern.clauses import row


def _plan(condition: str) -> RowPatternPlan:
    text = (
        "SELECT * FROM t MATCH_RECOGNIZE (MEASURES a AS a, b AS b ALL ROWS PER MATCH "
        f"PATTERN ({{- A B* -}} C?) DEFINE A AS {condition}, C AS a IS NULL)"
    )
    return plan_query(load_query(text, "s.sql"))


def _state(plan: RowPatternPlan) -> KeyState:
    state = KeyState()
    rows = [
        row(1, Decimal("1.50"), dt.datetime(2020, 1, 2, tzinfo=dt.UTC)),
        row(2, None, dt.date(2020, 1, 2)),
        row(3, [1, None, "x"], 2**70)._replace(micros=7),
    ]
    RowPatternMatcher(plan).advance(state, rows)
    return state


def test_round_trip() -> None:
    """Rows of every type, threads, the match so far and counts come back."""
    plan = _plan("b IS NOT NULL")
    state = _state(plan)
    assert state.attempt is not None
    assert state.attempt.found is not None
    assert state.attempt.threads
    assert decode(encode(state, plan), plan) == state


def test_refused() -> None:
    """Another plan, another version and damage are told apart."""
    plan, other = _plan("b IS NOT NULL"), _plan("b IS NULL")
    data = encode(_state(plan), plan)
    with pytest.raises(StateError, match="another row pattern"):
        decode(data, other)
    version, *rest = unpack(data)
    with pytest.raises(StateError, match="has the format 2; this program reads 1"):
        decode(pack([version + 1, *rest]), plan)
    for broken in (data[:-3], pack([version, plan.fingerprint, [1]]), b"", pack(7)):
        with pytest.raises(StateError, match="damaged"):
            decode(broken, plan)


def test_closed() -> None:
    """A closed key has nothing to keep."""
    plan = _plan("b IS NULL")
    with pytest.raises(ValueError, match="closed"):
        encode(KeyState(closed=True), plan)
