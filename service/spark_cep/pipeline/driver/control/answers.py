"""The source tells the driver when Kafka has answered it.

They are processes of one machine, so both read the same monotonic clock.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from spark_cep.pipeline.driver.control.written_files import write_atomically


class KafkaAnswer(NamedTuple):
    """An answer of Kafka: when it came, in monotonic milliseconds, and whether no batch begins
    with it, since there is nothing new or it is not due."""

    at: int
    waits: bool


def tell_answer(file: Path, answer: KafkaAnswer) -> None:
    """Replace what was told before. Where that cannot be written, nothing is heard of Kafka, and
    event time stands."""
    with suppress(OSError):
        write_atomically(file, json.dumps(answer))


def last_answer(file: Path) -> KafkaAnswer | None:
    """The last answer that was told; ``None``: there was none."""
    return KafkaAnswer(*json.loads(file.read_text("utf-8"))) if file.exists() else None
