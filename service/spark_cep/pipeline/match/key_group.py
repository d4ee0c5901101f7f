"""One key group during one batch: its clock, its state, and one partitioning of its rules after the
other (:mod:`~spark_cep.pipeline.match.partitioning_batch`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from spark_cep.columns.vectors import no_texts
from spark_cep.compiler.rule_set import RuleSetPlan
from spark_cep.errors import RESTORE, StateError
from spark_cep.matcher.batch.events import Names
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.matcher.findings.partial import FOREVER
from spark_cep.matcher.keys import KeysMatcher, KeysState
from spark_cep.model import LateEvent
from spark_cep.pipeline.match.batch_events import BatchEvents
from spark_cep.pipeline.match.batch_input import BatchInput
from spark_cep.pipeline.match.draining import DrainingRules
from spark_cep.pipeline.match.options import MatchOptions
from spark_cep.pipeline.match.partitioning_batch import PORTION, PartitioningBatch, prefix_of
from spark_cep.pipeline.match.reset_clock import PartitioningReset
from spark_cep.pipeline.match.watermark import BEGINNING, Clock
from spark_cep.pipeline.state.bucket_storage import BucketStorage
from spark_cep.pipeline.state.entries import Entries, Load, Store
from spark_cep.pipeline.state.group_format import FORMAT, check_format
from spark_cep.pipeline.state.known_rules import KnownRules


class KeyGroup:
    """Clock, topics, rules and buckets of one key group. ``stored``: the group's state, if it has
    one. StateError when it cannot be taken over."""

    def __init__(
        self,
        number: int,
        plan: RuleSetPlan,
        options: MatchOptions,
        matchers: Sequence[KeysMatcher],
        stored: dict[str, Any] | None = None,
    ) -> None:
        if stored is not None:
            _check(stored, options)
        self.number = number
        self.clock = Clock(options.policy, options.allowed_disorder_ms)
        if stored is not None:
            self.clock.restore(stored["clock"])
        self._events = BatchEvents(BatchInput(), self.clock.watermark, ())
        self._reset: PartitioningReset | None = None
        #: Partial matches that end as the clock is set back, by rule id and version.
        self.ended: Counter[tuple[str, int]] = Counter()
        #: Nanoseconds of the matcher in this batch, shared out to rules.
        self.processing: Counter[str] = Counter()
        self._options = options
        self._matchers = matchers
        #: Numbers of topics and record types.
        self.names = Names() if stored is None else Names(stored["topics"], stored["types"])
        by_prefix = {prefix_of(matcher.partitioning): matcher for matcher in matchers}
        # The first rules of a job have all events.
        begins = BEGINNING if stored is None else self.clock.newest + 1
        self._rules = KnownRules(plan, by_prefix, stored, self.clock.watermark, begins)
        draining = {} if stored is None else stored.get("drains", {})
        self._draining = DrainingRules(plan.draining, self.clock, self._rules, draining)
        # What bits mean says which rules there are, by their numbers in this state.
        self._entries = Entries(number, self._rules.meanings())
        if stored is not None:
            self._entries.restore(stored, self._rules.same_buckets)
            for prefix, matcher in by_prefix.items():
                for fingerprint in matcher.fingerprints:
                    carry = self._rules.carried.get(fingerprint)
                    if carry is not None:
                        self._entries.sooner(prefix, carry.sooner)

    def set_back(self, to: int) -> None:
        """Begin the batch with the watermark ``to``, if it is before the one that there is."""
        if to < self.clock.watermark:
            newest = self.clock.set_back(to)
            self._rules.begin_by(newest + 1)
            self._draining.set_back(newest)
            self._reset = PartitioningReset(to, newest)

    @property
    def gone(self) -> list[tuple[str, int, int]]:
        """Id, version and partial matches of rules that went, or changed, since the last batch."""
        return self._rules.gone

    def packed(self) -> dict[str, Any]:
        """The group's state to store."""
        return {
            "format": FORMAT,
            "key_groups": self._options.key_groups,
            "clock": self.clock.packed(),
            "topics": self.names.topics,
            "types": self.names.types,
            "drains": self._draining.packed(),
            **self._rules.packed(self._entries.meanings_needed()),
            **self._entries.packed(),
        }

    @property
    def late(self) -> Counter[str]:
        """The number of late events of this batch, by topic."""
        return self._events.late

    @property
    def partly_used(self) -> int:
        """The number of dead letters of this batch whose events other rules could use."""
        return self._events.partly_used

    def late_events(self) -> Iterator[LateEvent]:
        """The late events of the batch; none with ``emit_late`` off."""
        return self._events.late_events() if self._options.emit_late else iter(())

    def live(self) -> dict[tuple[str, int], int]:
        """Return the number of live partial matches by rule id and version."""
        return self._rules.live()

    def beginning(self) -> dict[tuple[str, int], int]:
        """Return the event times that are still to come at which rules begin, by rule id and
        version."""
        return self._rules.beginning(self.clock.watermark)

    @property
    def events_waiting(self) -> int:
        """The number of events that wait for the watermark; one that rules with different keys read
        counts for each key."""
        return self._entries.events_waiting

    def drained(self) -> list[str]:
        """Fingerprints of versions that drain and have nothing to do any more in this group."""
        return self._draining.done(self.clock.watermark)

    def states(self, load: Load) -> Iterator[tuple[KeysMatcher, KeysState]]:
        """All that is remembered of keys, by partitioning; the group is of no use afterwards."""
        for matcher in self._matchers:
            spread = self._entries.spread(
                prefix_of(matcher.partitioning), self._options.bucket_size
            )
            storage = BucketStorage(self._entries, spread, matcher.fingerprints, self._rules)
            for portion in self._entries.portions(spread, range(spread.before), PORTION):
                yield matcher, storage.read(portion, load).take(no_texts(), FOREVER)

    def run(self, batch: BatchInput, load: Load, store: Store) -> Iterator[Outputs]:
        """Apply a batch's events and decide every deadline that the watermark has reached.

        The events are read more than once, also by :meth:`late_events`.
        """
        before = self.clock.watermark
        keep = tuple(matcher.partitioning.keeps_payload for matcher in self._matchers)
        events = self._events = BatchEvents(batch, before, keep)
        watermark = self.clock.advance()
        for letter in events.dead_letters():
            yield Outputs(dead_letters=[letter])
        # Where no rule has a key any more, its partial matches are gone with the rules.
        self._entries.remove_others(store)
        sized = events.sizes()
        for number, matcher in enumerate(self._matchers):
            part = PartitioningBatch(
                matcher, self._options, self.names, self._entries, self._rules, self._draining,
                self.processing, load, store,
            )  # fmt: skip
            if self._reset is not None:
                yield from self._reset.run(part, self.ended)
            yield from part.run(number, events, sized[number], before, watermark)


def _check(stored: dict[str, Any], options: MatchOptions) -> None:
    check_format(stored)
    if stored["key_groups"] != options.key_groups:
        raise StateError(
            f"the state was written with {stored['key_groups']} key groups, and the checkpoint's"
            f" offsets say {options.key_groups}: a file of the state or of the offsets was replaced"
            f" by one of another checkpoint or copy: {RESTORE}"
        )
