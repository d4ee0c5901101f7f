"""Input and results of a runner, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.model import LateEvent
from spark_cep.pipeline.match.watermark import BEGINNING, Policy
from spark_cep.pipeline.read.records import KafkaRecords
from spark_cep.pipeline.wire.control import ControlRecord
from spark_cep.pipeline.wire.reports import Counts

#: As the setting ``outputs.late_events``.
LateEvents = Literal["relevant", "all", "drop"]


@dataclass(frozen=True)
class RunSettings:
    """The settings of a job that its results depend on, with their defaults: ``time.watermark``,
    ``time.allowed_disorder``, ``outputs.late_events``; and those on which they do not: the
    number of key groups, ``state.bucket_size``."""

    watermark: Policy = "partition_minimum"
    allowed_disorder_ms: int = 0
    late_events: LateEvents = "relevant"
    key_groups: int = 16
    bucket_size: int = 64 << 10


@dataclass(frozen=True)
class Batch:
    """Records that are applied together, and the clock's part.

    The watermark follows the records, as ``time.watermark`` says. ``control`` adds what the input
    does not say: partitions to wait for, and a lower bound, which events of this batch may be late
    by. With ``watermark`` it follows the caller's clock instead: events of this batch are late by
    the watermark of the batch before, and then it moves to ``watermark``. ``planned_at``: the time
    of day in ms since 1970, which bounds event times where ``time.max_ahead`` is set.
    """

    records: Iterable[KafkaRecords] = ()
    control: ControlRecord = field(default_factory=ControlRecord)
    watermark: int | None = None
    planned_at: int | None = None


@dataclass
class BatchResults:
    """The results of a batch. ``outputs``: matches, their rows, timeouts, dead letters; ``late``:
    late events, which ``late_counts`` counts by topic, also where they are dropped; ``live``:
    partial matches by rule id and version; ``gone``: those that went with changed rules;
    ``watermark``: at the end of the batch."""

    outputs: Outputs = field(default_factory=Outputs)
    late: list[LateEvent] = field(default_factory=list)
    late_counts: Mapping[str, int] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)
    live: Mapping[tuple[str, int], int] = field(default_factory=dict)
    gone: list[tuple[str, int, int]] = field(default_factory=list)
    watermark: int = BEGINNING
