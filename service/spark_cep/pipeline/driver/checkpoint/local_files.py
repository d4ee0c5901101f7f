"""Files of a checkpoint on a local disk, read without Spark, whose start takes seconds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from spark_cep.errors import RESTORE, StateError


class LocalFiles:
    """Reads what :class:`spark_cep.pipeline.driver.checkpoint.files.CheckpointFiles` reads, but for
    the checksums that Hadoop keeps beside its files."""

    def __init__(self, folder: Path) -> None:
        self.location = str(folder)
        self._folder = folder

    def names(self, log: str) -> list[str]:
        """The names of a log's files; none where there is no such folder. StateError when it cannot
        be read."""
        try:
            return [file.name for file in (self._folder / log).iterdir()]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StateError(f"{self.location}/{log} cannot be read: {error.strerror}") from error

    def parsed(self, name: str, after: int = 0) -> list[Any]:
        """A file's lines, each of them JSON, behind the first ``after`` ones. StateError when it is
        missing or damaged."""
        try:
            return parsed_lines((self._folder / name).read_text("utf-8"), after)
        except FileNotFoundError as error:
            raise missing(self.location, name) from error
        except OSError as error:
            raise StateError(f"{self.location}/{name} cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise damaged(self.location, name, error) from error


def parsed_lines(text: str, after: int) -> list[Any]:
    """The lines of a log's file; ValueError when one is not JSON, or none is there."""
    # Spark writes a dash for a source that has no offset yet.
    parsed = [json.loads(line) for line in text.splitlines()[after:] if line != "-"]
    if not parsed:
        raise ValueError("it ends too early")
    return parsed


def missing(location: str, name: str) -> StateError:
    """The error of a file that is not there."""
    return StateError(f"{location}/{name} is missing: {RESTORE}")


def damaged(location: str, name: str, error: Exception) -> StateError:
    """The error of a file with a checksum that does not fit, a cut line, other content."""
    reason = (str(error).strip().splitlines() or [""])[-1][:200]
    return StateError(f"{location}/{name} is damaged ({reason}): {RESTORE}")
