"""The format of a key group's state; that of the snapshots in it is their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.errors import StateError

FORMAT = 5


def check_format(stored: Mapping[str, Any]) -> None:
    """Refuse a key group's state of another format: StateError."""
    if stored["format"] != FORMAT:
        raise StateError(
            f"the checkpoint's state has format {stored['format']}, this version reads"
            f" {FORMAT}: start from a new checkpoint, or run the version that wrote it"
        )
