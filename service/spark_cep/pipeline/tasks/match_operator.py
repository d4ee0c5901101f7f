"""The matcher as a stateful Spark operator.

The grouping key is the label of a key group, whose state is

* ``group`` (one value): clock, numbers of topics, meanings of bits and columns, which entries there
  are and when each is next due, and how many partial matches live per rule;
* ``entries`` (a map): the entries (:mod:`spark_cep.pipeline.state.entries`).

When a query starts, Spark asks the operator for its state in a process made for that, which must
load it first: this module imports little, and what the matcher is made of stays pickled until
there are rows. Rules come with the batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StructField, StructType

from spark_cep.pipeline.spark.memory import memory_of_task
from spark_cep.pipeline.spark.private_api import pickled, unpickled
from spark_cep.pipeline.state.key_group_labels import group_of
from spark_cep.pipeline.tasks.batch_properties import properties_of_task
from spark_cep.pipeline.tasks.frames import frames_of, rows_of
from spark_cep.pipeline.tasks.pipelined_map import PipelinedMap
from spark_cep.pipeline.wire.fragments import fragments, whole

if TYPE_CHECKING:
    from spark_cep.pipeline.match.match import Matching, MatchProcessor

_VALUE = StructType([StructField("value", BinaryType())])


class MatchOperator(StatefulProcessor):
    """Opens the state, and hands the packets of one key group at a time to a matcher."""

    def __init__(self, matching: Matching) -> None:
        self._pickled: bytes = pickled(matching)
        self._matcher: MatchProcessor | None = None

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._group_state = handle.getValueState("group", _VALUE)
        self._entry_state = PipelinedMap(handle, "entries")

    def handleInputRows(  # noqa: N802  Spark's name
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: Any,  # noqa: N803, ARG002  Spark's interface
    ) -> Iterator[Any]:
        """One key group's packets of one batch in, output packets out, both as pandas frames."""
        properties = properties_of_task()
        first = self._matcher is None
        if self._matcher is None:
            matching: Matching = unpickled(self._pickled)
            self._matcher = matching.processor(properties.rules)
            self._matcher.open(self._group_state, self._entry_state)
        # A task tells of its process once.
        processes = memory_of_task if first else tuple
        made = self._matcher.process(
            group_of(key[0]),
            whole(rows_of(rows)),
            properties.offsets,
            properties.offsets_before,
            processes,
        )
        return frames_of(chain.from_iterable(fragments(*each) for each in made))

    def close(self) -> None:
        """Spark owns the state, and closes its connection when the task has ended."""
        self._entry_state.leave_open()
