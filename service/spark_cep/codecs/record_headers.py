"""Headers of records, as they stand in columns: of each the name and the value, each with its size
in four bytes in front (little endian), which is -1 where there is no value."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator
from typing import Final

Header = tuple[str, bytes | None]

_SIZE: Final = struct.Struct("<i")


def headers_of(packed: bytes) -> Iterator[Header]:
    """The names and values of a record's headers, in their order."""
    at = 0
    while at < len(packed):
        texts: list[bytes | None] = []
        for _ in range(2):
            (size,) = _SIZE.unpack_from(packed, at)
            at += _SIZE.size
            texts.append(None if size < 0 else packed[at : at + size])
            at += max(size, 0)
        name, value = texts
        yield (name or b"").decode("utf-8", "replace"), value


def headers_text(packed: bytes) -> str:
    """Packed headers as JSON: a list of objects with ``key`` and, where it has one, ``value`` in
    base64."""
    return json.dumps(list(_objects(packed)), ensure_ascii=False, separators=(",", ":"))


def _objects(packed: bytes) -> Iterator[dict[str, str]]:
    for name, value in headers_of(packed):
        header = {"key": name}
        if value is not None:
            header["value"] = base64.b64encode(value).decode("ascii")
        yield header


def headers_in(text: str | None) -> list[Header]:
    """The headers of which :func:`headers_text` made this text."""
    return [
        (each["key"], base64.b64decode(each["value"]) if "value" in each else None)
        for each in json.loads(text or "[]")
    ]
