"""Offsets of the source, as Spark's log has them."""

from __future__ import annotations

import json

import pytest

from spark_cep.pipeline.driver.control.source_offset import SourceOffset

CONTROL = {"clock": {"lower_bound": 17, "partitions": []}, "run": "r"}


def test_offsets_in_order() -> None:
    """Spark holds texts against each other: the same offsets are the same text, and they come back
    as they were."""
    ends = {("a", n): n for n in range(12)}
    offset = SourceOffset(CONTROL, dict(reversed(ends.items())), 4)
    text = json.dumps(offset.as_json())
    assert text == json.dumps(SourceOffset(CONTROL, ends, 4).as_json())
    assert list(json.loads(text)["input"]["a"]) == [str(n) for n in range(12)]
    assert SourceOffset.from_json(json.loads(text)) == offset
    of_one_stage = SourceOffset(CONTROL, ends, 4, one_stage=True)
    assert SourceOffset.from_json(of_one_stage.as_json()).one_stage
    assert of_one_stage == offset
    assert of_one_stage.digest == offset.digest
    assert offset.by_topic == {"a": {n: n for n in range(12)}}


def test_a_digest_tells_batches_apart() -> None:
    """By what was told and by what was read; a partition without a read record counts for nothing,
    nor does the number of key groups. The value is in commit markers."""
    offset = SourceOffset(CONTROL, {("a", 0): 7})
    assert offset.digest == "916aed6c4478bbeb"
    assert SourceOffset(CONTROL, {("a", 1): 0, ("a", 0): 7, ("b", 0): 0}).digest == offset.digest
    assert SourceOffset(CONTROL, {("a", 0): 7}, 4).digest == offset.digest
    assert SourceOffset({**CONTROL, "run": "s"}, {("a", 0): 7}).digest != offset.digest
    assert SourceOffset(CONTROL, {("a", 0): 8}).digest != offset.digest


@pytest.mark.parametrize(
    "sources",
    [
        [],
        [{"a": {"0": 7}}],
        [{"a": {"0": 7}}, {"number": 1, "statement": "{}"}],
        [{"control": {}, "input": {}}, {"control": {}, "input": {}}],
    ],
)
def test_an_entry_of_another_form(sources: list[object]) -> None:
    """Of other versions of the service, and of other jobs."""
    with pytest.raises(KeyError):
        SourceOffset.of_entry(sources)
