"""At start: do output and checkpoint agree, and from now on this run alone writes."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import cache, partial

from confluent_kafka import KafkaException

from spark_cep.errors import OutputError, StateError, TakenOverError
from spark_cep.kafka_errors import ErrorKind, kind_of, unavailable_or
from spark_cep.observability.logs import logger
from spark_cep.pipeline.deliver.commit_markers import CommitMarker, CommitMarkers
from spark_cep.pipeline.deliver.exactly_once import ExactlyOnce
from spark_cep.pipeline.driver.checkpoint.files import CheckpointFiles, Position

_log = logger(__name__)
_AT_ONCE = 16
#: A start that has to wait longer says so, and asks again.
_ATTEMPT_SECONDS = 10.0


def fence_earlier_runs(
    delivery: ExactlyOnce,
    partitions: int,
    checkpoint: CheckpointFiles,
    go_on: bool,
) -> None:
    """Fence every earlier run, and put this run's name in the commit marker of each state
    partition.

    Raises StateError, with nothing changed, when the output is ahead of the checkpoint or belongs
    to another one; with ``go_on`` that is logged, and the output may hold records twice.
    """
    markers = CommitMarkers(delivery.consumer_config, delivery.markers_topic)
    # Each asks the brokers several times, and waits.
    with closing(markers), ThreadPoolExecutor(_AT_ONCE) as pool:
        everything = range(partitions)
        _agree(delivery, map(markers.read, everything), checkpoint, go_on)
        start = partial(delivery.start_producer, seconds=_ATTEMPT_SECONDS)
        producers = list(pool.map(start, everything))
        # Up to here an earlier run may have gone on.
        found = [markers.read(partition) for partition in everything]
        agreed = _agree(delivery, found, checkpoint, go_on)

        def claim(partition: int) -> None:
            before = found[partition] if agreed else None
            own = CommitMarker(delivery.run)
            if before is not None:
                own = replace(before, run=delivery.run, writer="")
            try:
                delivery.begin(producers[partition], partition, own)
                delivery.commit(producers[partition])
            except KafkaException as error:
                reason = error.args[0]
                message = f"state partition {partition} cannot be taken over: {reason.str()}"
                if kind_of(reason) is ErrorKind.FENCED:
                    # It started after this one, so it is the one that goes on.
                    raise TakenOverError(
                        f"another instance of the service starts: {message}"
                    ) from error
                raise unavailable_or(OutputError, reason, message) from error

        list(pool.map(claim, everything))


def _agree(
    delivery: ExactlyOnce,
    markers: Iterable[CommitMarker | None],
    checkpoint: CheckpointFiles,
    go_on: bool,
) -> bool:
    position = checkpoint.position()
    found = []
    offset_of = cache(checkpoint.offset)
    for marker in markers:
        if marker is not None:
            offset = offset_of(marker.batch)
            why = disagreement(marker, position, None if offset is None else offset.digest)
            found += [why] if why is not None else []
    if not found:
        return True
    if not go_on:
        raise StateError(
            f"output and checkpoint disagree: {found[0]} (commit markers in"
            f" {delivery.markers_topic}, checkpoint {checkpoint.location}). Going on would write"
            " records again. If the checkpoint was lost or is an older copy, restore the right one."
            " If another job has the same outputs.transactional_id_prefix, give each its own. To go"
            " on all the same, set outputs.if_commit_markers_disagree: go_on for one start"
        )
    _log.warning("commit_markers_disagree", reason=found[0], topic=delivery.markers_topic)
    return False


def disagreement(
    marker: CommitMarker, position: Position | None, offsets: str | None
) -> str | None:
    """Why the output of a state partition cannot have come from the checkpoint; None if it can.
    ``offsets``: the digest of where the marker's batch ends, as far as the checkpoint has it."""
    if marker.query is None:
        return None
    if position is None:
        return f"{_holds(marker)} of query {marker.query}, the checkpoint is empty"
    if marker.query != position.query:
        return (
            f"{_holds(marker)} of query {marker.query}, the checkpoint belongs to query"
            f" {position.query}"
        )
    if marker.batch > position.batch:
        return f"{_holds(marker)}, the checkpoint has only come to batch {position.batch}"
    if marker.offsets and offsets is not None and marker.offsets != offsets:
        return (
            f"{_holds(marker)}, and offsets/{marker.batch} of the checkpoint are of other records"
        )
    return None


def _holds(marker: CommitMarker) -> str:
    return f"the output holds batch {marker.batch}"
