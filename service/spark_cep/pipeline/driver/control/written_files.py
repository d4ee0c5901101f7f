"""Files by which the driver tells its query something: sources run in processes of their own."""

from __future__ import annotations

from pathlib import Path

from spark_cep.errors import StartError


def tell(file: Path, text: str, what: str) -> None:
    """Replace a file, whole or not at all, that tells the query ``what``. Raises StartError when it
    cannot be written."""
    fresh = file.with_suffix(".new")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_text(text, "utf-8")
        fresh.replace(file)
    except OSError as error:
        raise StartError(
            f"{file}, which tells the query {what}, cannot be written: {error.strerror}"
        ) from error
