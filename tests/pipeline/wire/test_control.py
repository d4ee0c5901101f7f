"""Control records and the offset log."""

from __future__ import annotations

import json

from spark_cep.pipeline.wire.control import ControlRecord


def test_a_record_survives_the_offset_log() -> None:
    """It is the same after JSON."""
    record = ControlRecord((("t", 0), ("u", 1)), 17)
    assert ControlRecord.from_json(json.loads(json.dumps(record.as_json()))) == record
