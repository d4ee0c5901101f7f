"""Control records and the offset log."""

from __future__ import annotations

import json

import pytest

from service.pipeline.wire.control import ControlRecord


@pytest.mark.parametrize("paused", [None, (), ("f1", "f2")])
def test_a_record_survives_the_offset_log(paused: tuple[str, ...] | None) -> None:
    """It is the same after JSON."""
    record = ControlRecord((("t", 0), ("u", 1)), 17, paused)
    assert ControlRecord.from_json(json.loads(json.dumps(record.as_json()))) == record
