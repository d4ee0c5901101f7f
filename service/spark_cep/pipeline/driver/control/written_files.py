"""Files that the driver writes for its query: sources run in processes of their own."""

from __future__ import annotations

from pathlib import Path

from spark_cep.errors import StartError


def write_atomically(file: Path, text: str, what: str) -> None:
    """Replace a file of the query, whole or not at all. ``what`` is its content in messages. Raises
    StartError when it cannot be written."""
    fresh = file.with_suffix(".new")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_text(text, "utf-8")
        fresh.replace(file)
    except OSError as error:
        raise StartError(
            f"{file}, in which the query reads {what}, cannot be written: {error.strerror}"
        ) from error
