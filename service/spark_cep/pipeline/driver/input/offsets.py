"""The offsets that batches read.

The start of a new job, the end of each batch, and the ranges of its tasks are decided here, as
Spark's own source of Kafka (``KafkaMicroBatchStream``, ``KafkaOffsetRangeCalculator``)
does.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import cached_property, partial
from heapq import heappop, heappush
from itertools import pairwise
from typing import Final, TypeVar

from spark_cep.config import Settings
from spark_cep.config.engine import EARLIEST, LATEST
from spark_cep.errors import KafkaUnavailableError, StartError, StateError
from spark_cep.pipeline.driver.control.source_offset import Ends
from spark_cep.pipeline.driver.kafka.cluster import BEGINNING, END, Cluster
from spark_cep.pipeline.driver.kafka.watch import quick_cluster
from spark_cep.pipeline.read.record_range import Range
from spark_cep.pipeline.wire.control import Partition

_T = TypeVar("_T")
#: How long a broker that does not answer, or a topic that is not there, is waited for.
_BRIDGED_SECONDS: Final = 60.0
_GONE_SECONDS: Final = 10.0
_ASK_AGAIN_SECONDS: Final = 0.25
#: A task costs as much as some thousand records.
_RECORDS_OF_A_TASK: Final = 3_000
_REMEDY: Final = (
    "start from a new checkpoint, or set source.fail_on_data_loss to false to go on with what there"
    " is"
)


class InputOffsets:
    """Plans the batches of one query. ``cluster``: who is asked, by the reader's own connection.

    Each method that asks Kafka raises KafkaUnavailableError when it has not answered for a minute,
    ConfigurationError and StartError when it refuses.
    """

    def __init__(
        self,
        settings: Settings,
        cluster: Callable[[], Cluster] | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._settings = settings
        self._made = cluster or partial(quick_cluster, settings, settings.reader_config())
        self._clock, self._sleep = clock, sleep
        self._last: Ends | None = None
        self._known: Ends = {}
        self._gone_since: float | None = None

    @property
    def known(self) -> Ends:
        """The ends of the partitions when Kafka was asked last."""
        return self._known

    def initial(self) -> Ends:
        """The offsets that a new job starts at. Raises StartError when those of
        ``source.starting_offsets`` are not for the partitions that there are."""
        return self._bridged(self._initial)

    def latest(self, start: Ends, most: int | None) -> Ends:
        """Up to where a batch reads that starts at ``start``: no more than ``most`` records, a
        share of each partition. Raises StateError when records are gone that were not read, unless
        ``source.fail_on_data_loss`` is off."""
        return self._bridged(lambda: self._latest(start, most))

    def stop_at_present_ends(self) -> None:
        """From now on nothing is read that Kafka does not have yet."""
        self._last = self._bridged(lambda: self._offsets(self._partitions(), END))

    def ranges(self, begins: Ends, ends: Ends) -> list[list[Range]]:
        """The ranges that each task of a batch reads."""
        added = [at for at in ends if at not in begins]
        if added:
            begins = begins | self._bridged(lambda: self._offsets(added, BEGINNING))
        found = [
            Range(*at, begins[at], end) for at, end in sorted(ends.items()) if begins[at] < end
        ]
        least = self._settings.source.min_partitions or 1
        return together(divided(found, least), least)

    @property
    def state_partitions(self) -> int:
        """The number of tasks that match."""
        return self._settings.state.state_partitions

    @cached_property
    def _cluster(self) -> Cluster:
        return self._made()

    def _initial(self) -> Ends:
        start = self._settings.source.starting_offsets
        partitions = self._partitions()
        if isinstance(start, dict):
            return self._positions(start, partitions)
        if isinstance(start, datetime):
            found = self._offsets(partitions, round(start.timestamp() * 1000))
            none = [at for at, offset in found.items() if offset < 0]
            return found | self._offsets(none, END)
        return self._offsets(partitions, END if start == "latest" else BEGINNING)

    def _positions(
        self, given: Mapping[str, Mapping[int, int]], partitions: list[Partition]
    ) -> Ends:
        found = {(topic, n): offset for topic, each in given.items() for n, offset in each.items()}
        if set(found) != set(partitions):
            raise StartError(
                f"source.starting_offsets: has {_listed(found)}; the inputs are"
                f" {_listed(partitions)}, and each partition needs one"
            )
        for special, spec in ((LATEST, END), (EARLIEST, BEGINNING)):
            found |= self._offsets([at for at in found if found[at] == special], spec)
        return found

    def _latest(self, start: Ends, most: int | None) -> Ends:
        ends = self._offsets(self._partitions(start), END)
        self._known = ends
        if self._settings.source.fail_on_data_loss:
            self._check(start, ends)
        last = self._last
        if last is not None:
            ends = {
                at: max(min(end, last.get(at, 0)), start.get(at, 0))
                for at, end in ends.items()
                if at in last or at in start
            }
        added = [at for at in ends if at not in start]
        begins = start | (self._offsets(added, BEGINNING) if added else {})
        sizes = {at: max(0, end - begins.get(at, 0)) for at, end in ends.items()}
        return {
            at: begins.get(at, 0) + part if sizes[at] else ends[at]
            for at, part in shares(sizes, most).items()
        }

    def _check(self, start: Mapping[Partition, int], ends: Mapping[Partition, int]) -> None:
        for (topic, partition), begin in start.items():
            end = ends.get((topic, partition))
            if end is None:
                raise StateError(f"{topic}, partition {partition}: is there no more: {_REMEDY}")
            if end < begin:
                raise StateError(
                    f"{topic}, partition {partition}: ends at offset {end} now, and was read up to"
                    f" {begin}: {_REMEDY}"
                )

    def _partitions(self, start: Iterable[Partition] = ()) -> list[Partition]:
        """Those of the inputs. One that was there is waited for a while: a topic may be about to be
        created again, which the next batch notices."""
        inputs = self._settings.inputs.values()
        names = [topic for source in inputs for topic in source.topics]
        patterns = [re.compile(each.topic_pattern) for each in inputs if each.topic_pattern]
        while True:
            found = self._cluster.input_partitions(names, patterns)
            if set(start) <= set(found):
                self._gone_since = None
                return found
            now = self._clock()
            self._gone_since = now if self._gone_since is None else self._gone_since
            if now - self._gone_since >= _GONE_SECONDS:
                return found
            self._sleep(_ASK_AGAIN_SECONDS)

    def _offsets(self, partitions: list[Partition], place: int) -> Ends:
        committed = self._settings.kafka.reads_committed
        found = self._cluster.offsets(partitions, place, committed=committed)
        unknown = [at for at in partitions if at not in found]
        if unknown:
            # Brokers learn one after the other of a topic that has just come, or gone.
            raise KafkaUnavailableError(f"Kafka has no leader for {_listed(unknown)}")
        return found

    def _bridged(self, request: Callable[[], _T]) -> _T:
        """A broker that is unavailable for a moment is no reason to end the query."""
        ends = self._clock() + _BRIDGED_SECONDS
        while True:
            try:
                return request()
            except KafkaUnavailableError:
                if self._clock() >= ends:
                    raise
                self._sleep(_ASK_AGAIN_SECONDS)


def shares(sizes: Mapping[Partition, int], most: int | None) -> Ends:
    """The number of records of each partition in a batch of at most ``most``, or a few more: each
    the same part of what it has, at least one."""
    total = sum(sizes.values())
    if most is None or total <= most:
        return dict(sizes)
    return {
        at: min(size, max(1, most * size // total)) if size else 0 for at, size in sizes.items()
    }


def divided(ranges: list[Range], least: int) -> list[Range]:
    """Cut large ranges until there are ``least``, if there are so many records."""
    total = sum(each.end - each.start for each in ranges)
    if len(ranges) >= least:
        return ranges
    found = []
    for each in ranges:
        size = each.end - each.start
        parts = min(size, max(1, -(-least * size // total)))
        cuts = [each.start + size * n // parts for n in range(parts + 1)]
        found += [each._replace(start=a, end=b) for a, b in pairwise(cuts)]
    return found


def together(ranges: list[Range], least: int) -> list[list[Range]]:
    """The ranges of each task: at least ``least`` tasks, if there are so many ranges, and no more
    than have some :data:`_RECORDS_OF_A_TASK` records each, about as many as the others."""
    total = sum(each.end - each.start for each in ranges)
    count = min(len(ranges), max(least, total // _RECORDS_OF_A_TASK, 1))
    tasks: list[list[Range]] = [[] for _ in range(count)]
    records = [(0, number) for number in range(count)]
    for each in sorted(ranges, key=lambda each: each.start - each.end):
        size, number = heappop(records)
        tasks[number].append(each)
        heappush(records, (size + each.end - each.start, number))
    return tasks


def _listed(partitions: Iterable[Partition]) -> str:
    by_topic: dict[str, list[str]] = {}
    for topic, partition in sorted(partitions):
        by_topic.setdefault(topic, []).append(str(partition))
    return "; ".join(f"{topic} {', '.join(each)}" for topic, each in by_topic.items()) or "none"
