"""The short form of the run of mutated schemas, and what it would notice."""

from __future__ import annotations

from typing import Any

import pytest

from spark_cep.codecs.record_faults import Fault
from tests.hostile import schemas
from tests.pipeline.decode.reference import decoded

WRITERS, READERS = 120, 20


def test_mutated_writers_are_read_or_refused() -> None:
    """With the values that fastavro reads, or with a sentence."""
    found = schemas.check_writers(WRITERS, 7)
    assert not found.wrong, found.wrong[0]
    for what in ("read", "refused", "writers refused"):
        assert found.counts[what] > 10, found.counts


def test_mutated_readers_are_read_or_refused() -> None:
    """The same with a reader that is mutated, and good writers."""
    found = schemas.check_readers(READERS, 8)
    assert not found.wrong, found.wrong[0]
    for what in ("readers", "readers refused", "read"):
        assert found.counts[what] > 3, found.counts


def test_one_wrong_value_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one column of one record."""

    def wrong(*given: Any) -> dict[int, dict[str, Any]]:
        made = decoded(*given)
        row = next(each for each in made.values() if each.get("slot_0_0") is not None)
        row["slot_0_0"] = "wrong"
        return made

    monkeypatch.setattr(schemas, "decoded", wrong)
    (told,) = schemas.check_writers(WRITERS // 2, 7).wrong
    assert "'wrong'" in told


def test_a_fault_without_a_reason_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sound records that are refused."""

    def wrong(*given: Any) -> dict[int, dict[str, Any]]:
        return {
            offset: row | {"fault": int(Fault.UNDECODABLE)}
            for offset, row in decoded(*given).items()
        }

    monkeypatch.setattr(schemas, "decoded", wrong)
    assert len(schemas.check_writers(WRITERS // 2, 7).wrong) > 10
