"""The output of ``spark-cep dead-letters``: dead letters as text for people, or as JSON lines."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import asdict

from spark_cep.errors import printable
from spark_cep.pipeline.driver.commands.dead_letter_topic import Letter

_PREVIEW_BYTES = 120


def as_json(letter: Letter) -> str:
    """One JSON object: the fields of the dead letter, bytes in Base64, time as ISO 8601."""
    document = asdict(letter)
    partition, offset = document.pop("place")
    for name in ("record_key", "record_value"):
        content = document[name]
        document[name] = None if content is None else base64.b64encode(content).decode("ascii")
    document["failed_at"] = letter.failed_at.isoformat(timespec="milliseconds")
    return json.dumps(document | {"at": {"partition": partition, "offset": offset}})


def as_text(letter: Letter) -> Iterator[str]:
    """The lines of one dead letter; of its record's bytes the first ones."""
    record = f"{letter.topic}, partition {letter.partition}, offset {letter.offset}"
    yield f"{letter.failed_at.isoformat(timespec='milliseconds')} {letter.reason}: {record}"
    yield f"  {printable(letter.detail)}"
    if letter.rule_id is not None:
        step = "" if letter.step is None else f", step {printable(letter.step)}"
        yield f"  rule {printable(letter.rule_id)}{step}"
    yield f"  key: {_preview(letter.record_key)}"
    yield f"  value: {_preview(letter.record_value)}"


def _preview(content: bytes | None) -> str:
    """Bytes as Python writes them, which is safe on any terminal."""
    if content is None:
        return "none"
    if len(content) <= _PREVIEW_BYTES:
        return repr(content)
    return f"{content[:_PREVIEW_BYTES]!r}... ({len(content)} bytes)"
