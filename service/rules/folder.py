"""Rules from a folder: its ``*.yaml``, ``*.yml`` and ``*.json`` files, sorted by name.

Hidden files are passed over, and folders inside the folder are not entered: a mounted ConfigMap
keeps its data twice, once behind hidden links. A link is followed when it stays inside the folder,
and refused when it leads out: messages quote what is wrong, and another file's content is not the
author's to see. All problems of all files are reported at once.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from service.documents.reading import MOST_CHARACTERS
from service.errors import Problem, RuleSetError
from service.pattern import document
from service.rules.rule_set import RuleFile, RuleSet, assemble, repeated

SUFFIXES = (".yaml", ".yml", ".json")
MOST_FILES = 10_000

_MOST_BYTES = 4 * MOST_CHARACTERS


def read_rules(path: Path) -> RuleSet:
    """The rules of a folder, or of one file; ``RuleSetError`` with every problem found."""
    rules = examine_rules(path)
    if rules.problems:
        raise RuleSetError(rules.problems)
    return rules


def examine_rules(path: Path) -> RuleSet:
    """The same with its problems: if there is one, what is right of the rules can be checked, and
    none of them may run. ``RuleSetError`` when the folder cannot be read."""
    files = read_files(path)
    warnings = []
    if not files:
        allowed = "files named *.yaml, *.yml or *.json"
        warnings.append(
            Problem(message="the folder holds no rules", source=str(path), allowed=allowed)
        )
    loaded = [one for file in files for one in file.loaded]
    problems = [problem for file in files for problem in file.problems] + repeated(loaded)
    if problems:
        return RuleSet(tuple(loaded), tuple(warnings), tuple(problems))
    return assemble(loaded, warnings)


def read_files(path: Path) -> list[RuleFile]:
    """Each file of a folder, or one file, with its rules and its problems; ``RuleSetError`` when
    the folder cannot be read. What has not changed since is not read into rules again."""
    try:
        files = [path] if path.is_file() else rule_files(path)
    except OSError as error:
        problem = Problem(
            message=f"the rules cannot be read: {error.strerror}",
            source=str(path),
            allowed="a folder of rule files that may be read",
        )
        raise RuleSetError([problem]) from error
    if len(files) > MOST_FILES:
        message = f"the folder holds {len(files):,} rule files"
        allowed = f"at most {MOST_FILES:,}"
        raise RuleSetError([Problem(message=message, source=str(path), allowed=allowed)])
    inside = path.resolve()
    return [_read_file(file, path, inside) for file in files]


def _read_file(file: Path, path: Path, inside: Path) -> RuleFile:
    try:
        if file is not path and not file.resolve().is_relative_to(inside):
            raise RuleSetError([_leads_out(file, path)])
        return _parsed(_text(file), str(file))
    except RuleSetError as error:
        return RuleFile(str(file), (), tuple(error.problems))


@lru_cache(maxsize=MOST_FILES)
def _parsed(text: str, name: str) -> RuleFile:
    try:
        rules, problems = document.examine_rules(text, name)
    except RuleSetError as error:
        return RuleFile(name, (), tuple(error.problems))
    return RuleFile(name, tuple(rules), tuple(problems))


Stamp = tuple[tuple[str, int, int, int], ...]


def stamp(path: Path) -> Stamp:
    """What changes when a folder's rule files do: name, inode, size and time of each, as its links
    lead now. ``RuleSetError`` when the folder cannot be read."""
    # The inode's own time: copies may keep that of the content, and an inode is used again.
    try:
        found = []
        for file in [path] if path.is_file() else rule_files(path):
            of = file.stat()
            found.append((file.name, of.st_ino, of.st_size, of.st_ctime_ns))
    except OSError as error:
        message = f"the rules cannot be read: {error.strerror}"
        raise RuleSetError([Problem(message=message, source=str(path))]) from error
    return tuple(found)


def rule_files(folder: Path) -> list[Path]:
    """The rule files of a folder, sorted by name."""
    return sorted(
        entry
        for entry in folder.iterdir()
        if entry.suffix.lower() in SUFFIXES and not entry.name.startswith(".") and entry.is_file()
    )


def _leads_out(file: Path, folder: Path) -> Problem:
    return Problem(
        message="the link leads out of the folder of rules",
        source=str(file),
        allowed=f"files, and links to files, below {folder}",
    )


def _text(file: Path) -> str:
    try:
        if file.stat().st_size > _MOST_BYTES:
            problem = Problem(
                message="the file is too large",
                source=str(file),
                allowed=f"at most {MOST_CHARACTERS:,} characters in one file",
            )
            raise RuleSetError([problem])
        return file.read_bytes().decode("utf-8")
    except OSError as error:
        message = f"the file cannot be read: {error.strerror}"
        raise RuleSetError([Problem(message=message, source=str(file))]) from error
    except UnicodeDecodeError as error:
        problem = Problem(
            message=f"the file is not UTF-8: byte {error.start} cannot be read",
            source=str(file),
            allowed="text in UTF-8",
        )
        raise RuleSetError([problem]) from error
