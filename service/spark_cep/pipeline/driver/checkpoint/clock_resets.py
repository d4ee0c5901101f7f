"""Resets of the clock in a checkpoint: ``clock/N`` is the N-th, the newest counts.

A file is written while the job is stopped, whole or not at all. The next start tells its first new
batch, and whether a batch was told is in the offset log. So one batch does a reset, and does it
again when it is repeated, and no other does.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from spark_cep.errors import StateError
from spark_cep.pipeline.driver.checkpoint.files import CheckpointFiles, Position
from spark_cep.pipeline.driver.control.control_file import reset_of

_LOG: Final = "clock"


@dataclass(frozen=True, slots=True)
class ClockReset:
    """The reset ``number``, to a watermark in milliseconds. ``pending``: no batch was told yet."""

    number: int
    to: int
    pending: bool


def write_reset(files: CheckpointFiles, number: int, to: int) -> None:
    """Write a reset behind those that there are. Raises StateError when it cannot be written."""
    files.write(f"{_LOG}/{number}", json.dumps({"to": to}))


def newest_reset(files: CheckpointFiles, position: Position) -> ClockReset | None:
    """The newest reset of a checkpoint at this position. StateError when its file is damaged."""
    number = max((int(name) for name in files.names(_LOG) if name.isdigit()), default=0)
    if not number:
        return None
    name = f"{_LOG}/{number}"
    (content,) = files.parsed(name)
    if not isinstance(content, dict) or not isinstance(content.get("to"), int):
        raise StateError(f"{files.location}/{name} is no reset of the clock: delete it")
    offset = files.offset(position.batch)
    told = 0 if offset is None else reset_of(offset)
    return ClockReset(number, content["to"], pending=told != number)
