"""Values as producers with AWS Glue's registry write them."""

from __future__ import annotations

import zlib
from uuid import UUID

from spark_cep.codecs.registry.loops import framing_loops as loops


def frame_of_glue(version: UUID, body: bytes, *, compressed: bool = False) -> bytes:
    """``body`` behind Glue's header."""
    compression = loops.ZLIB if compressed else loops.PLAIN
    return bytes([loops.GLUE_MAGIC, compression]) + version.bytes + (
        zlib.compress(body) if compressed else body
    )  # fmt: skip
