"""Rules from a folder: its ``*.yaml``, ``*.yml``, ``*.json`` and ``*.sql`` files, sorted by name.

Hidden files and test cases (``*.cases.yaml``) are passed over, and folders inside the folder are
not entered: a mounted ConfigMap keeps its data twice, once behind hidden links. A link is followed
when it stays inside the folder, and refused when it leads out: messages quote what is wrong, and
another file's content is not the author's to see. All problems of all files are reported at once.
"""

from __future__ import annotations

import time
from pathlib import Path

from spark_cep.errors import Problem, RuleSetError, printable
from spark_cep.pattern.document.sql_file import SUFFIX as SQL_SUFFIX
from spark_cep.rules.rule_set import RuleFile, RuleSet, examine, valid
from spark_cep.rules.sources.source import (
    MOST_BYTES,
    SourceEntries,
    check_count,
    decoded,
    not_read,
    too_large,
)

SUFFIXES = (".yaml", ".yml", ".json", SQL_SUFFIX)
#: What a folder of rules has.
RULE_FILES = "files named *.yaml, *.yml, *.json or *.sql"
#: What stands before the suffix of a file with test cases (:mod:`spark_cep.cases`).
OF_CASES = ".cases"

#: At a folder that changes, each time it is read.
_MOST_LOOKS = 4


class FolderSource:
    """The folder as a source. A change is taken once two looks, ``settle_seconds`` apart, find the
    same: files may be written in parts, and a mounted ConfigMap changes its links one after the
    other. The first read does not wait for that; a job that goes on from a checkpoint reads
    twice."""

    def __init__(self, path: Path, settle_seconds: float = 0.5) -> None:
        self.name = shown_name(path)
        self._path = path
        self._settle_seconds = settle_seconds
        self._begun = False
        self._taken: Stamp | None = None
        self._entries = SourceEntries()

    def read(self) -> list[RuleFile] | None:
        """See :class:`~spark_cep.rules.sources.source.RuleSource`."""
        begun, self._begun = self._begun, True
        newest: Stamp | None = stamp(self._path)
        if newest == self._taken:
            return None
        if begun:
            newest = self._settled()
        if newest is None:
            return None
        files = read_files(self._path, self._entries)
        if begun and stamp(self._path) != newest:
            # A rule that moves from file to file would be there twice, or not at all.
            return None
        self._taken = newest
        return files

    def _settled(self) -> Stamp | None:
        newest = stamp(self._path)
        for _ in range(_MOST_LOOKS):
            time.sleep(self._settle_seconds)
            before, newest = newest, stamp(self._path)
            if newest == before:
                return newest
        return None

    def close(self) -> None:
        """Nothing is held."""


def read_rules(path: Path) -> RuleSet:
    """The rules of a folder, or of one file; ``RuleSetError`` with every problem found."""
    return valid(examine_rules(path))


def examine_rules(path: Path) -> RuleSet:
    """The rules of a folder with their problems. ``RuleSetError`` when the folder cannot be
    read."""
    return examine(read_files(path), shown_name(path), RULE_FILES)


def read_files(path: Path, entries: SourceEntries | None = None) -> list[RuleFile]:
    """Each file of a folder, or one file, with its rules and its problems; ``RuleSetError`` when
    the folder cannot be read. ``entries``: what was read before."""
    try:
        files = [path] if path.is_file() else rule_files(path)
    except OSError as error:
        raise _not_read(path, error) from error
    check_count(len(files), "rule files", shown_name(path))
    inside = path.resolve()
    entries = entries or SourceEntries()
    entries.next_snapshot()
    return [_read_file(file, path, inside, entries) for file in files]


def shown_name(path: Path) -> str:
    """The name of a file in messages, records and metrics: text that can be written, also where the
    name is not UTF-8; no two have the same."""
    return printable(str(path).replace("\\", r"\\"))


def _read_file(file: Path, path: Path, inside: Path, entries: SourceEntries) -> RuleFile:
    try:
        if file is not path and not file.resolve().is_relative_to(inside):
            raise RuleSetError([_leads_out(file, path)])
        return entries.file(_text(file), shown_name(file))
    except RuleSetError as error:
        return RuleFile(shown_name(file), (), tuple(error.problems))


Stamp = tuple[tuple[str, int, int, int], ...]


def stamp(path: Path) -> Stamp:
    """A value that changes when a folder's rule files do: name, inode, size and time of each, as
    its links lead now. ``RuleSetError`` when the folder cannot be read."""
    # The inode's own time: copies may keep that of the content, and an inode is used again.
    try:
        stamps = []
        for file in [path] if path.is_file() else rule_files(path):
            status = file.stat()
            stamps.append((file.name, status.st_ino, status.st_size, status.st_ctime_ns))
    except OSError as error:
        raise _not_read(path, error) from error
    return tuple(stamps)


def _not_read(path: Path, error: OSError) -> RuleSetError:
    return not_read(
        str(error.strerror), shown_name(path), "a folder of rule files that may be read"
    )


def rule_files(folder: Path) -> list[Path]:
    """The rule files of a folder, sorted by name."""
    return sorted(
        entry
        for entry in folder.iterdir()
        if entry.suffix.lower() in SUFFIXES
        and not entry.name.startswith(".")
        and not has_cases(entry)
        and entry.is_file()
    )


def has_cases(file: Path) -> bool:
    """Return whether a file has test cases, and no rules, by its name."""
    return file.stem.lower().endswith(OF_CASES)


def _leads_out(file: Path, folder: Path) -> Problem:
    return Problem(
        message="the link leads out of the folder of rules",
        source=shown_name(file),
        allowed=f"files, and links to files, below {shown_name(folder)}",
    )


def _text(file: Path) -> str:
    try:
        if file.stat().st_size > MOST_BYTES:
            raise too_large(shown_name(file), "file")
        return decoded(file.read_bytes(), shown_name(file), "file")
    except OSError as error:
        message = f"the file cannot be read: {error.strerror}"
        raise RuleSetError([Problem(message=message, source=shown_name(file))]) from error
