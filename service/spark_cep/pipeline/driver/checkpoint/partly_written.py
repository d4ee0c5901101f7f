"""The batch that a query begins with, where some of its output was committed before.

What is there cannot be taken back, so the batch must come out as it did. Records, their order and
the clock are the same by themselves (the offset log has them); which schemas were known when it was
decoded is in its commit markers.
"""

from __future__ import annotations

from dataclasses import dataclass

from spark_cep.pipeline.deliver.commit_markers import CommitMarkers
from spark_cep.pipeline.deliver.exactly_once import ExactlyOnce
from spark_cep.pipeline.driver.checkpoint.files import CheckpointFiles


@dataclass(frozen=True, slots=True)
class PartlyWritten:
    """``schemas``: the ones that ``batch`` knew, as their format writes them; to it all others are
    unknown."""

    batch: int
    schemas: str


def partly_written(
    delivery: ExactlyOnce, partitions: int, checkpoint: CheckpointFiles
) -> PartlyWritten | None:
    """The batch that is planned and not done, if one of the state partitions has written it.

    Raises what :meth:`CommitMarkers.read` and :meth:`CheckpointFiles.position` do.
    """
    position = checkpoint.position()
    if position is None or not position.uncommitted:
        return None
    markers = CommitMarkers(delivery.consumer_config, delivery.markers_topic)
    try:
        for marker in map(markers.read, range(partitions)):
            if marker is not None and (marker.query, marker.batch, marker.schema_ids is None) == (
                position.query, position.batch, False,
            ):  # fmt: skip
                return PartlyWritten(position.batch, marker.schema_ids or "")
    finally:
        markers.close()
    return None
