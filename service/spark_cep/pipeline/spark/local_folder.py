"""The folder of a checkpoint, found without loading Spark."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlparse


def local_folder(location: str) -> Path | None:
    """The folder of a checkpoint; ``None`` for one that is not on a local disk."""
    url = urlparse(location)
    if url.scheme not in ("", "file"):
        return None
    return Path(unquote(url.path) if url.scheme else location)
