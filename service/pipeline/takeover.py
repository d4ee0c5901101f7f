"""At start: do output and checkpoint agree, and from now on this run alone writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from confluent_kafka import KafkaException

from service.errors import OutputError, StateError
from service.observability.logs import logger
from service.pipeline.checkpoint import Checkpoint
from service.pipeline.exactly_once import ExactlyOnce
from service.pipeline.marks import Mark, Marks

_log = logger(__name__)


def take_over(
    delivery: ExactlyOnce,
    partitions: int,
    checkpoint: Callable[[], Checkpoint | None],
    location: str,
    go_on: bool,
) -> None:
    """Fence every earlier run and mark all state partitions as this run's.

    Raises StateError, with nothing changed, when the output is ahead of the checkpoint or belongs
    to another one; with ``go_on`` that is logged, and the output may hold records twice.
    """
    marks = Marks(delivery.consumer_config, delivery.marks_topic)
    try:
        everything = range(partitions)
        _agree(delivery, map(marks.read, everything), checkpoint(), location, go_on)
        producers = [delivery.start_producer(partition) for partition in everything]
        # Up to here an earlier run may have gone on.
        found = [marks.read(partition) for partition in everything]
        now = checkpoint()
        agreed = _agree(delivery, found, now, location, go_on)
        for partition, (producer, mark) in enumerate(zip(producers, found, strict=True)):
            known = mark is not None and agreed
            claim = Mark(
                delivery.run,
                mark.query if known and mark else None,
                mark.batch if known and mark else -1,
            )
            try:
                producer.begin_transaction()
                delivery.commit(producer, partition, claim)
            except KafkaException as error:
                raise OutputError(
                    f"state partition {partition} cannot be taken over: {error.args[0].str()}"
                ) from error
    finally:
        marks.close()


def _agree(
    delivery: ExactlyOnce,
    marks: Iterable[Mark | None],
    checkpoint: Checkpoint | None,
    location: str,
    go_on: bool,
) -> bool:
    found = [why for mark in marks if mark and (why := disagreement(mark, checkpoint))]
    if not found:
        return True
    if not go_on:
        raise StateError(
            f"output and checkpoint disagree: {found[0]} (marks in {delivery.marks_topic},"
            f" checkpoint {location}). Going on would write records again. If the checkpoint was"
            " lost or is an older copy, restore the right one; if another job uses the same"
            " outputs.transactional_id_prefix, give each its own; to go on all the same, set"
            " outputs.if_marks_disagree: go_on for one start"
        )
    _log.warning("marks_disagree", reason=found[0], topic=delivery.marks_topic)
    return False


def disagreement(mark: Mark, checkpoint: Checkpoint | None) -> str | None:
    """Why the output of a state partition cannot have come from the checkpoint; None if it can."""
    if mark.query is None:
        return None
    if checkpoint is None:
        return f"the output holds batch {mark.batch} of query {mark.query}, the checkpoint is empty"
    if mark.query != checkpoint.query:
        return (
            f"the output holds batch {mark.batch} of query {mark.query}, the checkpoint belongs to"
            f" query {checkpoint.query}"
        )
    if mark.batch > checkpoint.batch:
        return (
            f"the output holds batch {mark.batch}, the checkpoint has only come to batch"
            f" {checkpoint.batch}"
        )
    return None
