"""The options of a key group besides its rules."""

from __future__ import annotations

from dataclasses import dataclass

from spark_cep.compiler.record_types import RecordTypes
from spark_cep.pipeline.match.spool import SLICE
from spark_cep.pipeline.match.watermark import Policy


@dataclass(frozen=True)
class MatchOptions:
    """The options of the operator besides the plan. ``bucket_size``: bytes of a bucket before there
    are more of them; ``type_names``: record name by type number; ``slice_bytes``: bytes of events
    that are processed together."""

    key_groups: int
    bucket_size: int
    policy: Policy
    allowed_disorder_ms: int
    emit_late: bool
    type_names: tuple[str | None, ...]
    types: RecordTypes
    slice_bytes: int = SLICE
