"""Latencies by the broker's log: its headers, when records are visible, and matches."""

from __future__ import annotations

import io
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pytest

from bench.events import SCHEMA
from bench.kafka_log import Batch, PartitionLog, read_batches, read_log
from bench.latency import completed_by, joined, live_jobs, moments_of, percentiles
from bench.live_events import LiveEvents, send_steadily
from bench.outputs import DisagreementError

_IN_A_TRANSACTION, _OUTSIDE, _MARKER = 0x18, 0x08, 0x38


def header(first: int, last: int, time: int, kind: int, producer: int = -1) -> bytes:
    """A batch as Kafka's documentation has it, with no more than a byte behind its header."""
    body = struct.pack(
        ">ibIhiqqqhii", 0, 2, 0, kind, last - first, 0, time, producer, 0, 0, last - first + 1
    )
    return struct.pack(">qi", first, len(body) + 1) + body + b"\0"


def numbers(*values: int) -> Any:
    """Offsets or times as columns."""
    return np.array(values, np.int64)


def test_batches_are_read_from_segments(tmp_path: Path) -> None:
    """One after the other, to the last that is whole."""
    folder = tmp_path / "matches-3"
    folder.mkdir()
    whole = header(0, 4, 1_000, _IN_A_TRANSACTION, 77) + header(5, 5, 1_200, _MARKER, 77)
    (folder / "00000000000000000000.log").write_bytes(whole)
    (folder / "00000000000000000006.log").write_bytes(
        header(6, 8, 1_300, _OUTSIDE) + header(9, 9, 1_400, _OUTSIDE)[:-1]
    )
    first, second = sorted(folder.iterdir())
    assert [*read_batches(first)] == [Batch(0, 4, 1_000, 77), Batch(5, 5, 1_200, 77, True)]
    assert [*read_batches(second)] == [Batch(6, 8, 1_300)]
    log = read_log(tmp_path, "matches", 3)
    assert (log.end, log.visible_end) == (9, 9)


def test_times_of_producers_are_refused(tmp_path: Path) -> None:
    """They would be another clock's."""
    (tmp_path / "0.log").write_bytes(header(7, 7, 1_000, 0))
    with pytest.raises(ValueError, match=r"offset 7.*message.timestamp.type=LogAppendTime"):
        list(read_batches(tmp_path / "0.log"))


def test_a_record_is_visible_when_no_older_transaction_is_open() -> None:
    """Its own, and those that began before it in the partition, have ended."""
    log = PartitionLog(
        [
            Batch(0, 1, 100),
            Batch(2, 2, 110, producer=1),
            Batch(3, 4, 120, producer=2),
            Batch(5, 5, 130),
            Batch(6, 6, 140, producer=2, ends=True),
            Batch(7, 7, 200, producer=1, ends=True),
            Batch(8, 8, 210, producer=2),
        ]
    )
    assert log.appended_ms(numbers(0, 1, 2, 4, 5, 8)).tolist() == [100, 100, 110, 120, 130, 210]
    assert log.visible_ms(numbers(0, 1, 2, 3, 5)).tolist() == [100, 100, 200, 200, 200]
    assert log.visible_end == 8
    with pytest.raises(IndexError):
        log.visible_ms(numbers(8))


def plain(*times: int) -> PartitionLog:
    """A partition whose records were appended at these times, one by one."""
    return PartitionLog(Batch(offset, offset, time) for offset, time in enumerate(times))


#: Event times, and appends, of two partitions.
SENT = [numbers(1_000, 1_100, 1_900), numbers(1_050, 1_090, 1_600, 2_500)]
INPUTS = [plain(5_000, 5_100, 5_900), plain(5_050, 5_090, 5_600, 6_500)]


@pytest.mark.parametrize(
    ("disorder_ms", "passed"),
    # The match is complete with the event of 1,100. Both partitions have a newer one with those of
    # 1,900 and 1,600; where the watermark trails by more, the second partition's comes later.
    [(0, 5_900), (499, 5_900), (700, 6_500)],
)
def test_moments_of_a_match(disorder_ms: int, passed: int) -> None:
    """The watermark passes with the slowest partition, a millisecond behind the disorder."""
    outputs = [PartitionLog([Batch(0, 0, 7_000, 1), Batch(1, 1, 7_400, 1, ends=True)])]
    found = moments_of(numbers(0, 1, 0, 0).reshape(1, 4), SENT, INPUTS, outputs, disorder_ms)
    moments = (found.completed, found.passed, found.written, found.visible)
    assert [each.tolist() for each in moments] == [[5_100], [passed], [7_000], [7_400]]
    within = found.within(5_000, 5_200)
    assert within["event"] == {"count": 1}
    assert found.within(5_101, 5_200)["event"] == {"count": 0}


def test_a_match_before_its_time_is_an_error() -> None:
    """Then the watermark is not what it is taken for."""
    row = numbers(0, 1, 0, 0).reshape(1, 4)
    with pytest.raises(DisagreementError, match="1 of 1 matches"):
        moments_of(row, SENT, INPUTS, [plain(5_500)], 0)


def test_percentiles_of_latencies() -> None:
    """Of a hundred and one, the 51st and the 100th."""
    found = percentiles(n / 100 for n in range(101))
    assert (found["count"], found["median"], found["99th"], found["largest"]) == (101, 0.5, 0.99, 1)


def test_the_event_that_completes_a_match() -> None:
    """That of the last step, whatever the order in which steps are told."""
    assert completed_by("m|ann|fail=3:12|ok=1:99") == (1, 99)
    assert completed_by("m|ann|ok=1:99|fail=3:12") == (1, 99)


def cell(rate: int, job: str, median: float) -> dict[str, Any]:
    """What was measured of a job."""
    return {"rate": rate, "job": job, "median": median}


def document(commit: str, *cells: dict[str, Any]) -> dict[str, Any]:
    """Figures of a version."""
    facts = {"version": "1", "commit": commit, "processor": "P", "cores": 2, "load_before": 0.1}
    return {"facts": facts, "load": {"seconds": 60}, "latency": [*cells]}


def test_parts_of_a_table_are_joined() -> None:
    """What is measured again takes the place of what it was; another version begins anew."""
    kept = document("abc", cell(10, "ours", 1.0), cell(20_000, "ours", 2.0))
    found = document("abc", cell(1_000, "ours", 3.0), cell(10, "ours", 4.0))
    medians = [(each["rate"], each["median"]) for each in joined(kept, found)["latency"]]
    assert medians == [(10, 4.0), (1_000, 3.0), (20_000, 2.0)]
    other = document("def", cell(10, "ours", 5.0))
    assert joined(kept, other) == other


def test_jobs_have_names_of_their_own() -> None:
    """By which they are chosen, and known in the table."""
    program: Any = object()
    names = [job.name for job in live_jobs([2, 16], program)]
    assert len(set(names)) == len(names) == 8
    assert all(name.startswith("ours") for name in (job.name for job in live_jobs([2], None)))


class Taken:
    """A feed that keeps what it is given."""

    def __init__(self) -> None:
        self.taken: list[tuple[bytes, str, int]] = []

    def send(self, value: bytes, key: str, partition: int) -> None:
        """Keep it."""
        self.taken.append((value, key, partition))

    def serve(self) -> None:
        """Nothing to be done."""


def test_an_event_for_each_partition() -> None:
    """So that a job waits for all of them."""
    events, feed = LiveEvents(77, users=9, partitions=9), Taken()
    events.send_to_all(feed, 1_800_000_000_000)  # type: ignore[arg-type]  # a feed to nowhere
    assert [partition for _, _, partition in feed.taken] == list(range(9))
    assert [len(events.times(partition)) for partition in range(9)] == [1] * 9


@pytest.mark.parametrize("disorder_ms", [0, 1_000])
def test_live_events_are_avro_of_the_schema(disorder_ms: int) -> None:
    """What is put together from parts can be decoded; times are those that are remembered."""
    events = LiveEvents(77, users=12, disorder_ms=disorder_ms)
    now, feed = 1_800_000_000_000, Taken()
    for _ in range(3):
        events.send(feed, now, 100)  # type: ignore[arg-type]  # a feed to nowhere
    kinds = set()
    times: dict[int, list[int]] = {n: [] for n in range(4)}
    for value, key, partition in feed.taken:
        assert value[0] == 0
        assert struct.unpack(">I", value[1:5]) == (77,)
        body = io.BytesIO(value[5:])
        event: Any = fastavro.schemaless_reader(body, fastavro.parse_schema(SCHEMA), None)
        assert not body.read()
        assert event["user_id"] == key
        times[partition].append(round(event["ts"].timestamp() * 1000))
        kinds.add(event["event_type"])
    assert {"login_fail", "login_ok"} <= kinds
    for partition, sent in times.items():
        assert events.times(partition).tolist() == sent
        assert all(0 <= now - each < max(disorder_ms, 1) for each in sent)


def test_a_feed_without_time_sends_nothing() -> None:
    """And is not late."""
    feed: Any = Taken()
    answers: Sequence[bool] = [True, False]
    assert send_steadily(feed, LiveEvents(1, users=4), 1, iter(answers).__next__) <= 0
    assert not feed.taken
