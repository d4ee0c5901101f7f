"""The matcher as a stateful Spark operator.

The grouping key is the label of a key group, whose state is a map of entries: ``group`` has clock,
numbers of topics, meanings of bits and columns, which other entries there are and when each is next
due, and how many partial matches live per rule; the others are those of
:mod:`spark_cep.pipeline.state.entries`. A second state variable would take Spark some milliseconds
of each task.

When a query starts, Spark asks the operator for its state in a process made for that, which must
load it first: this module imports little, and what the matcher is made of stays pickled until
there are rows. Rules come with the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, cast

from pyspark import TaskContext
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from spark_cep.errors import StateError
from spark_cep.pipeline.spark.memory import memory_of_task
from spark_cep.pipeline.spark.private_api import pickled, spark_type, unpickled
from spark_cep.pipeline.state.key_group_labels import group_of
from spark_cep.pipeline.tasks.batch_properties import properties_of_task
from spark_cep.pipeline.tasks.frames import frame_of, rows_of
from spark_cep.pipeline.tasks.pipelined_map import PipelinedMap
from spark_cep.pipeline.wire.fragments import whole
from spark_cep.pipeline.wire.packet_schemas import REPORT_SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from spark_cep.pipeline.deliver.delivery_process import WritesTask
    from spark_cep.pipeline.deliver.output import Delivery
    from spark_cep.pipeline.match.match import Matching, MatchProcessor
    from spark_cep.pipeline.wire.reports import ProcessMemory
    from spark_cep.pipeline.wire.task_properties import TaskProperties


#: The state variable of entries.
ENTRIES: Final = "entries"


class MatchOperator(StatefulProcessor):
    """Opens the state, hands the packets of one key group at a time to a matcher, and writes what
    it finds. ``partitions``: the number of state partitions."""

    def __init__(self, matching: Matching, delivery: Delivery, partitions: int) -> None:
        self._pickled: bytes = pickled((matching, delivery))
        self._partitions = partitions
        self._task: _Task | None = None

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._entry_state = PipelinedMap(handle, ENTRIES)

    def handleInputRows(  # noqa: N802  Spark's name
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: Any,  # noqa: N803, ARG002  Spark's interface
    ) -> Iterator[Any]:
        """One key group's packets of one batch in, as pandas frames. The last key group of the task
        commits its output, and gives all reports."""
        processes: Callable[[], Iterable[ProcessMemory]] = tuple
        if self._task is None:
            # A task tells of its process once.
            processes = memory_of_task
            self._task = self._begun()
        task, group = self._task, group_of(key[0])
        try:
            found = task.matcher.process(
                group,
                whole(rows_of(rows)),
                task.properties.offsets,
                task.properties.offsets_before,
                processes,
            )
            task.reports += task.output.written(found)
            task.left.remove(group)
            if task.left:
                return
            task.reports.append(task.output.finished())
        except BaseException:
            task.output.abandon()
            raise
        yield frame_of(task.reports)

    def close(self) -> None:
        """Spark owns the state, and closes its connection when the task has ended. Raises
        StateError when a key group was not there, and so nothing is written."""
        self._entry_state.leave_open()
        task = self._task
        if task is not None and task.left:
            task.output.abandon()
            raise StateError(
                f"batch {task.properties.batch} has nothing for key groups {sorted(task.left)}, and"
                " each batch tells each key group the time"
            )

    def _begun(self) -> _Task:
        from spark_cep.pipeline.deliver.delivery_process import task_output
        from spark_cep.pipeline.deliver.output import WrittenBatch

        spark = TaskContext.get()
        assert spark is not None
        properties = properties_of_task()
        matching, delivery = _unpickled(self._pickled)
        matcher = _matcher(self._pickled, properties.rules)
        matcher.open(self._entry_state)
        partition = spark.partitionId()
        # Each batch has packets for each key group.
        groups = set(range(partition, matching.options.key_groups, self._partitions))
        batch = WrittenBatch(
            properties.query, properties.batch, properties.known_schemas, properties.offsets
        )
        again = properties.first or spark.attemptNumber() > 0
        output = task_output(delivery, partition, batch, again=again)
        return _Task(properties, matcher, output, groups)


def by_key_group(packets: DataFrame, operator: StatefulProcessor) -> DataFrame:
    """The reports of an operator that is called for each key group. Queries on one checkpoint have
    this form, by which Spark tells that the state is theirs."""
    return packets.groupBy("label").transformWithStateInPandas(
        statefulProcessor=operator,
        outputStructType=spark_type(REPORT_SCHEMA),
        outputMode="Append",
        timeMode="None",
    )


@lru_cache(maxsize=1)
def _unpickled(made: bytes) -> tuple[Matching, Delivery]:
    return cast("tuple[Matching, Delivery]", unpickled(made))


@lru_cache(maxsize=1)
def _matcher(made: bytes, rules: str) -> MatchProcessor:
    """The matcher of a batch's rules, which holds nothing of a task."""
    return _unpickled(made)[0].processor(rules)


@dataclass(slots=True)
class _Task:
    """A task at work; ``left``: the key groups that it has not come to; ``reports``: those of the
    others."""

    properties: TaskProperties
    matcher: MatchProcessor
    output: WritesTask
    left: set[int]
    reports: list[bytes] = field(default_factory=list)
