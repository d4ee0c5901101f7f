"""The splitting of key groups as a stateful Spark operator, with the state of the job's matcher."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from spark_cep.pipeline.state.key_group_labels import group_of, label
from spark_cep.pipeline.tasks.match_operator import ENTRIES
from spark_cep.pipeline.tasks.pipelined_map import PipelinedMap


class SplitOperator(StatefulProcessor):
    """Splits each key group that has a row, so that there are ``key_groups``: they stay in its
    state partition. ``bucket_size``: that of the settings."""

    def __init__(self, key_groups: int, bucket_size: int) -> None:
        self._key_groups, self._bucket_size = key_groups, bucket_size

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._entries = PipelinedMap(handle, ENTRIES)

    def handleInputRows(  # noqa: N802  Spark's name
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: Any,  # noqa: N803, ARG002  Spark's interface
    ) -> Iterator[Any]:
        """A key group is split; nothing comes of it but its state."""
        from spark_cep.pipeline.state.split_group import split_group

        for _ in rows:
            pass
        split_group(group_of(key[0]), self._key_groups, self._bucket_size, self._of)
        return iter(())

    def close(self) -> None:
        """Spark owns the state."""
        self._entries.leave_open()

    def _of(self, group: int) -> PipelinedMap:
        self._entries.use(label(group))
        return self._entries
