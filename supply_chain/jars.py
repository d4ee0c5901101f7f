"""The pinned jars: which ones there are, and whether a folder has them.

``jars.lock.toml`` next to this module names every jar that is used beside PySpark's own, in groups:
``bench`` (what benchmarks load), ``broker`` and ``registry`` (what demo, tests and benchmarks
start), ``docs`` (what draws diagrams in the documentation site). Nothing is downloaded here
(:mod:`supply_chain.jar_download`).
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from supply_chain.errors import DependencyError

LOCK_FILE: Final = Path(__file__).with_name("jars.lock.toml")
_LOCK_HEADER: Final = """\
# Every jar that spark-cep uses, by group, with the SHA-256 of the file.
# Edit `roots`, then run `python -m supply_chain lock-jars`: it rewrites `jars` (all that the roots
# need at run time when `transitive` is true, else the roots alone).
"""


@dataclass(frozen=True, slots=True)
class Coordinates:
    """Where a file stands in a Maven repository."""

    group: str
    name: str
    version: str
    classifier: str | None = None
    extension: str = "jar"

    @classmethod
    def parse(cls, text: str) -> Coordinates:
        """Read ``group:name:version``, ``…:classifier`` and ``…@extension``."""
        found = re.fullmatch(r"([^:@]+):([^:@]+):([^:@]+)(?::([^:@]+))?(?:@([^:@]+))?", text)
        if found is None:
            raise DependencyError(
                f"{LOCK_FILE.name}: {text!r} is not group:name:version[:classifier][@extension]"
            )
        group, name, version, classifier, extension = found.groups()
        return cls(group, name, version, classifier, extension or "jar")

    @property
    def file_name(self) -> str:
        """The file's name in the folder of jars, the same as in a Maven repository."""
        suffix = f"-{self.classifier}" if self.classifier else ""
        return f"{self.name}-{self.version}{suffix}.{self.extension}"


@dataclass(frozen=True, slots=True)
class Jar:
    """One pinned file."""

    at: Coordinates
    sha256: str


@dataclass(frozen=True, slots=True)
class Group:
    """The jars that are used together; ``about`` says for what and why these versions."""

    name: str
    about: str
    roots: tuple[str, ...]
    transitive: bool
    jars: tuple[Jar, ...]


def read_lock(text: str | None = None) -> dict[str, Group]:
    """All groups of the lock file (or of ``text``), by name."""
    if text is None:
        text = LOCK_FILE.read_text("utf-8")
    groups: dict[str, Group] = {}
    for name, table in tomllib.loads(text).items():
        try:
            jars = tuple(
                Jar(Coordinates(**{k: v for k, v in row.items() if k != "sha256"}), row["sha256"])
                for row in table["jars"]
            )
            groups[name] = Group(
                name, table["about"], tuple(table["roots"]), table["transitive"], jars
            )
        except (KeyError, TypeError) as error:
            raise DependencyError(
                f"{LOCK_FILE.name}: group {name!r} is malformed: {error}"
            ) from error
    return groups


def resolve(group: str, folder: Path) -> list[Path]:
    """The files of ``group`` in ``folder``, each verified; raise DependencyError when one is not.

    The message names each jar that is missing or different, the expected and the found checksum,
    and the command that fetches it.
    """
    wanted = group_named(group)
    problems = [
        f"  {jar.at.file_name}: expected sha256 {jar.sha256}, found {found or 'no file'}"
        for jar, found in unfit(wanted.jars, folder)
    ]
    if problems:
        raise DependencyError(
            f"{len(problems)} of the {len(wanted.jars)} pinned jars of group {group!r} are missing "
            f"from {folder} or are not the pinned ones:\n" + "\n".join(problems) + "\n"
            f"fetch: python -m supply_chain fetch-jars {group} --into {folder}"
        )
    return [folder / jar.at.file_name for jar in wanted.jars]


def group_named(name: str) -> Group:
    """One group of the lock file. DependencyError where there is none of that name."""
    groups = read_lock()
    if name not in groups:
        raise DependencyError(f"no group of jars is named {name!r}; groups: {', '.join(groups)}")
    return groups[name]


def sha256(path: Path) -> str | None:
    """The checksum of a file; None where there is no file."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return None


def unfit(jars: Iterable[Jar], folder: Path) -> Iterator[tuple[Jar, str | None]]:
    """The jars that are not in the folder as pinned, with the checksum found (None: no file)."""
    for jar in jars:
        found = sha256(folder / jar.at.file_name)
        if found != jar.sha256:
            yield jar, found


def rendered(groups: Iterable[Group]) -> str:
    """The lock file's text; :func:`read_lock` reads back the same groups."""
    parts = [_LOCK_HEADER]
    for group in groups:
        rows = []
        for jar in group.jars:
            fields = {"group": jar.at.group, "name": jar.at.name, "version": jar.at.version}
            if jar.at.classifier:
                fields["classifier"] = jar.at.classifier
            if jar.at.extension != "jar":
                fields["extension"] = jar.at.extension
            fields["sha256"] = jar.sha256
            rows.append("{ " + ", ".join(f'{k} = "{v}"' for k, v in fields.items()) + " }")
        parts.append(
            f'\n[{group.name}]\nabout = """\n{group.about}"""\nroots = [\n'
            + "".join(f'  "{root}",\n' for root in group.roots)
            + f"]\ntransitive = {str(group.transitive).lower()}\njars = [\n"
            + "".join(f"  {row},\n" for row in rows)
            + "]\n"
        )
    return "".join(parts)
