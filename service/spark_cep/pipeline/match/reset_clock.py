"""A clock that is set back: what lies behind the new time, in one partitioning of a key group.

Partial matches that hold later events end, and so do complete ones that were decided at a later
time and are not released yet. Events that wait, and are later than any that the new clock may have
seen, become dead letters. What stays is in the order of event time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from spark_cep.codecs.output.dead_letters import Reason
from spark_cep.columns.compilation import FOREVER
from spark_cep.columns.vectors import no_texts
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.model import DeadLetter, Event
from spark_cep.pipeline.match.partitioning_batch import PORTION, PartitioningBatch, prefix_of
from spark_cep.pipeline.match.waiting import WaitingEvents
from spark_cep.pipeline.state.bucket_storage import BucketStorage
from spark_cep.pipeline.state.later_events import without_later


@dataclass(frozen=True)
class PartitioningReset:
    """The clock goes back to the watermark ``to``; ``newest``: the latest event that it may have
    seen."""

    to: int
    newest: int

    def run(self, part: PartitioningBatch, ended: Counter[tuple[str, int]]) -> Iterator[Outputs]:
        """Yield dead letters and counts; ``ended`` gets how many partial matches end, by rule id
        and version."""
        waiting = WaitingEvents(prefix_of(part.matcher.partitioning), part.entries, part.rules)
        for events in waiting.beyond(self.newest, part.load, part.store):
            read = events.objects(part.names, ())
            yield Outputs(dead_letters=[self._letter(read(row)) for row in range(len(events))])
        yield self._state(part, ended)

    def _letter(self, event: Event) -> DeadLetter:
        detail = (
            f"the event, of {event.time} ms, waited for the watermark when the clock was set back"
            f" to {self.to} ms"
        )
        reason = Reason.EVENT_TIME_OUT_OF_BOUNDS.value
        return DeadLetter(event.at, reason, detail, record_value=event.payload)

    def _state(self, part: PartitioningBatch, ended: Counter[tuple[str, int]]) -> Outputs:
        matcher, entries, rules = part.matcher, part.entries, part.rules
        planned = [each.plan.rule for each in matcher.partitioning.rules]
        cooldowns = np.array(
            [FOREVER if rule.cooldown_ms is None else rule.cooldown_ms for rule in planned],
            np.int64,
        )
        spread = entries.spread(prefix_of(matcher.partitioning), part.options.bucket_size)
        storage = BucketStorage(entries, spread, matcher.fingerprints, rules)
        outputs = Outputs()
        for portion in entries.portions(spread, range(spread.before), PORTION):
            keys = storage.read(portion, part.load)
            state = keys.take(no_texts(), FOREVER)
            rules.count(matcher.fingerprints, state, -1)
            left, by_rule = without_later(state, self.to, cooldowns)
            rules.count(matcher.fingerprints, left, 1)
            keys.give(left)
            storage.write(portion, keys.written(), part.store)
            for rule, count in zip(planned, by_rule.tolist(), strict=True):
                if count:
                    outputs.counts[rule.id, "dropped"] += count
                    ended[rule.id, rule.version] += count
        return outputs
