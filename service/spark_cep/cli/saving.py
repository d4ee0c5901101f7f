"""Files that commands write."""

from __future__ import annotations

from pathlib import Path

from spark_cep.errors import ConfigurationError


def save(text: str, file: Path) -> None:
    """Write ``text`` to ``file``; raises ConfigurationError when that cannot be done."""
    try:
        file.write_text(text, "utf-8")
    except FileNotFoundError:
        raise ConfigurationError(
            f"{file}: cannot be written: the folder {file.parent} does not exist"
        ) from None
    except OSError as error:
        raise ConfigurationError(f"{file}: cannot be written: {error.strerror}") from error
