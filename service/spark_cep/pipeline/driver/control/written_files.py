"""Files between the driver and its query: sources run in processes of their own."""

from __future__ import annotations

from pathlib import Path

from spark_cep.errors import StartError


def write_atomically(file: Path, text: str) -> None:
    """Replace a file, whole or not at all. Raises OSError when it cannot be written."""
    fresh = file.with_suffix(".new")
    fresh.write_text(text, "utf-8")
    fresh.replace(file)


def write_for_query(file: Path, text: str, what: str) -> None:
    """Replace a file that the query reads, and make its folder. ``what`` is its content in
    messages. Raises StartError when it cannot be written."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, text)
    except OSError as error:
        raise StartError(
            f"{file}, in which the query reads {what}, cannot be written: {error.strerror}"
        ) from error
