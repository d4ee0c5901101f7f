"""Records of a batch by their bytes: from a sample at first, then from the batches."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from spark_cep.config import Settings
from spark_cep.pipeline.driver.input.batch_limit import BatchLimit

MIB = 2**20


def limit(mean: float | None, state_partitions: int = 2, **source: Any) -> BatchLimit:
    """A limit of a job with these settings of its source."""
    settings = Settings.model_validate(
        {
            "kafka": {"bootstrap_servers": "b:9092"},
            "inputs": {"a": {"topics": ["a"]}},
            "registry": {"url": "http://r"},
            "state": {"checkpoint": "/c", "state_partitions": state_partitions},
            "source": source,
        }
    )
    return BatchLimit(settings, mean)


def test_small_records_are_bounded_in_number_large_ones_in_bytes() -> None:
    """By default two million, and 256 MiB; either bound can be left out."""
    assert limit(100).records.most == 2_000_000
    assert limit(1024).records.most == 256 * 1024
    assert limit(None).records.most == 256 * 1024
    assert limit(MIB).records.most == 256
    assert limit(1e12).records.most == 1
    assert limit(100, max_offsets_per_trigger=None).records.most == 256 * MIB // 100
    assert limit(MIB, max_bytes_per_trigger=None).records.most == 2_000_000
    neither = limit(MIB, max_bytes_per_trigger=None, max_offsets_per_trigger=None)
    assert neither.records.most is None


@given(st.lists(st.floats(1, 1e7), min_size=1, max_size=30), st.floats(1, 1e7))
def test_it_follows_the_records(sizes: list[float], first: float) -> None:
    """After a full batch the next one of such records keeps to the bound, but for a fifth; after
    some batches of one size it comes near it."""
    followed = limit(first, max_bytes_per_trigger="8 MiB", max_offsets_per_trigger=None)
    for size in sizes:
        before = followed.records.most
        assert before is not None
        followed.batch_done(before, int(before * size))
        most = followed.records.most
        assert most is not None
        assert most <= max(1, 8 * MIB / size) * 1.2 or size * most <= 8 * MIB
    for _ in range(20):
        assert followed.records.most is not None
        followed.batch_done(followed.records.most, int(followed.records.most * 1_000))
    assert followed.records.most is not None
    assert 0.8 <= followed.records.most * 1_000 / (8 * MIB) <= 1.2


def test_a_guess_gives_way_to_the_first_batch() -> None:
    """Where nothing was known, a batch of a thousand records is believed; a smaller one in part."""
    guessed = limit(None, max_offsets_per_trigger=None)
    guessed.batch_done(100, 100 * 64)
    assert guessed.records.most is not None
    assert guessed.records.most < 256 * MIB // 512
    guessed.batch_done(1_000, 1_000 * 64)
    assert guessed.records.most == 256 * MIB // 64


def test_small_changes_change_nothing() -> None:
    """Spark is told of what matters."""
    steady = limit(1024)
    assert not steady.batch_done(1_000, 1_000 * 1_050)
    assert not steady.batch_done(0, 0)
    assert steady.batch_done(1_000_000, 1_000_000 * 5_000)


def test_a_small_batch_goes_through_one_stage() -> None:
    """By records and by bytes, also without bounds; not where many tasks would read all of it, or
    where tasks may find different records."""
    assert limit(100).records.of_one_stage == 6_000
    assert limit(1_024).records.of_one_stage == 2_048
    assert limit(5 * MIB).records.of_one_stage == 0
    free = limit(1_024, max_bytes_per_trigger=None, max_offsets_per_trigger=None)
    assert free.records.of_one_stage == 2_048
    assert free.batch_done(10_000, 10_000 * 4_096)
    assert free.records == (None, 819)
    assert limit(100, state_partitions=1, min_partitions=1).records.of_one_stage == 6_000
    assert limit(100, state_partitions=3).records.of_one_stage is None
    assert limit(100, min_partitions=2).records.of_one_stage is None
    assert limit(100, fail_on_data_loss=False).records.of_one_stage is None
