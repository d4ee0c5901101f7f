"""The offset at which a batch ends, as Spark's offset log keeps it.

A batch that runs again after a crash is given the offset that is logged: it reads the same records,
and sees the same control record. The keys are in checkpoints, so they keep their names.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from spark_cep.pipeline.spark.java_batches import ONE_STAGE
from spark_cep.pipeline.wire.control import Partition

#: By partition, the offset of the next record.
Ends = dict[Partition, int]

#: Of a digest.
_DIGITS: Final = 16


@dataclass(frozen=True, slots=True)
class SourceOffset:
    """The content of the driver's file by then
    (:class:`~spark_cep.pipeline.driver.control.control_file.ControlFile`; empty: nothing), and
    the offsets at which the batch ends in each partition. ``key_groups``: the number of key groups
    that the state has when it is done. ``one_stage``: the batch has a task for each state
    partition, which reads all of its records; this tells no batches apart."""

    control: dict[str, Any] = field(default_factory=dict)
    input: Ends = field(default_factory=dict)
    key_groups: int = 1
    one_stage: bool = field(default=False, compare=False)

    def as_json(self) -> dict[str, Any]:
        """For the log. Equal offsets have equal texts: Spark holds these against each other."""
        return {
            "control": self.control,
            "input": nested(self.input),
            "key_groups": self.key_groups,
            ONE_STAGE: self.one_stage,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> SourceOffset:
        """From the log. Raises KeyError for a value of another form."""
        input_ends, key_groups = by_partition(value["input"]), value["key_groups"]
        return cls(value["control"], input_ends, key_groups, value.get(ONE_STAGE, False))

    @classmethod
    def of_entry(cls, sources: Sequence[Any]) -> SourceOffset:
        """From an entry of the log, with an offset for each source. Raises KeyError when it is not
        of the one source of a query."""
        if len(sources) != 1:
            raise KeyError("control")
        return cls.from_json(sources[0])

    @property
    def by_topic(self) -> dict[str, dict[int, int]]:
        """The offsets at which the batch ends, by topic and partition."""
        return {
            topic: {int(partition): end for partition, end in each.items()}
            for topic, each in nested(self.input).items()
        }

    @property
    def digest(self) -> str:
        """A digest that no other batch has. Batches of a rescale have that of the batch before,
        whose state they move.

        Partitions of which nothing is read yet are left out. Spark begins a batch for one that was
        added, also without a record; such a batch has no task that reads, so it writes no state,
        and what counts for the next batch is the one before.
        """
        begun = {at: end for at, end in self.input.items() if end}
        told = {"control": self.control, "input": nested(begun)}
        text = json.dumps(told, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def by_partition(offsets: Mapping[str, Mapping[str, int]]) -> Ends:
    """Offsets out of JSON, which has texts for numbers of partitions."""
    return {(topic, int(n)): end for topic, each in offsets.items() for n, end in each.items()}


def nested(offsets: Mapping[Partition, int]) -> dict[str, dict[str, int]]:
    """Offsets for JSON, in order."""
    made: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        made.setdefault(topic, {})[str(partition)] = offset
    return made
