"""Applies batches to key groups whose state is stored: by Spark, or in memory.

The state of a key group carries a checksum, names the batch that wrote it, and has the checksums of
its entries: what is damaged, or of another batch than the one before, is refused, never decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from time import perf_counter_ns

from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import Partitioning, RuleSetPlan
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.matcher.keys import KeysMatcher
from spark_cep.packing import pack, sealed, unpack, unsealed
from spark_cep.pipeline.match.batch_input import BatchInput
from spark_cep.pipeline.match.key_group import KeyGroup
from spark_cep.pipeline.match.options import MatchOptions
from spark_cep.pipeline.state.entries import EntryMap
from spark_cep.pipeline.state.group_format import GROUP, WRITTEN_IN, check_written
from spark_cep.pipeline.state.group_values import check_values

#: Makes the matcher of a partitioning.
MakeMatcher = Callable[[Partitioning, RecordTypes], KeysMatcher]
#: Bytes of entries that wait to be written together.
_MOST_UNWRITTEN = 1 << 20


class GroupMatcher:
    """Applies all partitionings of a rule set to one key group at a time.

    ``read_ns`` and ``write_ns`` are the nanoseconds that the state of the group took.
    """

    def __init__(
        self, plan: RuleSetPlan, options: MatchOptions, make: MakeMatcher = KeysMatcher
    ) -> None:
        self._plan = plan
        self._options = options
        self.matchers = [make(part, options.types) for part in plan.partitionings]
        self.read_ns = self.write_ns = 0
        self._unwritten: list[tuple[str, bytes | None]] = []
        self._unwritten_bytes = 0

    def open(self, entries: EntryMap) -> None:
        """Use this state, which is that of the key group that is at work."""
        self.entries = entries

    def begin(self, number: int, batch: BatchInput, offsets_before: str) -> KeyGroup:
        """The key group as the batch finds it. ``offsets_before``: digest of the batch before.
        StateError when the state is not that of the batch before."""
        self.read_ns = self.write_ns = 0
        self._unwritten, self._unwritten_bytes = [], 0
        group = self.stored(number, offsets_before)
        if batch.control.reset_to is not None:
            group.set_back(batch.control.reset_to)
        # Partitions to wait for, before what was read of them.
        group.clock.control(batch.control)
        for times in batch.times:
            group.clock.read(times.partitions)
        return group

    def stored(self, number: int, offsets_before: str) -> KeyGroup:
        """The key group as it is stored."""
        (value,) = self.load([GROUP])
        stored = None if value is None else unpack(unsealed(value))
        check_written(stored, number, offsets_before)
        if stored is not None:
            check_values(stored)
        return KeyGroup(number, self._plan, self._options, self.matchers, stored)

    def run(self, group: KeyGroup, batch: BatchInput) -> Iterator[Outputs]:
        """Apply the batch; what is found, in pieces of bounded size."""
        yield from group.run(batch, self.load, self._store)

    def end(self, group: KeyGroup, offsets: str) -> None:
        """Write what is left, and the group's value. ``offsets``: digest of the batch."""
        self._store(GROUP, sealed(pack({**group.packed(), WRITTEN_IN: offsets})))
        self._write()

    def load(self, names: Sequence[str]) -> Sequence[bytes | None]:
        """The values of entries."""
        if self._unwritten:
            self._write()
        began = perf_counter_ns()
        found = self.entries.get(names)
        self.read_ns += perf_counter_ns() - began
        return found

    def _store(self, name: str, value: bytes | None) -> None:
        self._unwritten.append((name, value))
        self._unwritten_bytes += 0 if value is None else len(value)
        if self._unwritten_bytes >= _MOST_UNWRITTEN:
            self._write()

    def _write(self) -> None:
        began = perf_counter_ns()
        self.entries.put(self._unwritten)
        self._unwritten, self._unwritten_bytes = [], 0
        self.write_ns += perf_counter_ns() - began
