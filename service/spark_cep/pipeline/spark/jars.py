"""The pinned jars: which ones, are they here, and how to get them.

``jars.lock.toml`` next to this module names every jar that is used beside PySpark's own, in groups:
``bench`` (what benchmarks load), ``broker`` and ``registry`` (what demo, tests and benchmarks
start). Guarantees:

* :func:`resolve` only looks and never downloads. What it returns has the pinned checksum.
* :func:`fetch` puts a jar in place only after its checksum was verified, by a rename within the
  folder; processes may fetch into one folder at the same time. Nothing is written elsewhere.
* A jar that is there and right is never fetched again, so a filled folder needs no network.

Downloads go through the Ivy that PySpark ships (PySpark itself is not imported), from Maven Central
or from the repository that ``SPARK_CEP_MAVEN_REPOSITORY`` names::

    python -m spark_cep.pipeline.spark.jars fetch broker --into FOLDER
    python -m spark_cep.pipeline.spark.jars lock   # after a change of roots: closure, checksums
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated
from xml.sax.saxutils import quoteattr

import typer

from spark_cep.errors import DependencyError, SparkCepError, StartError

LOCK_FILE = "jars.lock.toml"
OLDEST_JAVA = 17
_DOWNLOAD_SECONDS = 1800
_LOCK_HEADER = """\
# Every jar that spark-cep uses, by group, with the SHA-256 of the file.
# Edit `roots`, then run `python -m spark_cep.pipeline.spark.jars lock`: it rewrites `jars` (all
# that the roots need at run time when `transitive` is true, else the roots alone).
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
                f"{LOCK_FILE}: {text!r} is not group:name:version[:classifier][@extension]"
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
        text = _lock_path().read_text(encoding="utf-8")
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
            raise DependencyError(f"{LOCK_FILE}: group {name!r} is malformed: {error}") from error
    return groups


def resolve(group: str, folder: Path) -> list[Path]:
    """The files of ``group`` in ``folder``, each verified; raise DependencyError when one is not.

    The message names each jar that is missing or different, the expected and the found checksum,
    and the command that fetches it.
    """
    wanted = _group(group)
    problems = [
        f"  {jar.at.file_name}: expected sha256 {jar.sha256}, found {found or 'no file'}"
        for jar, found in _unfit(wanted.jars, folder)
    ]
    if problems:
        raise DependencyError(
            f"{len(problems)} of the {len(wanted.jars)} pinned jars of group {group!r} are missing "
            f"from {folder} or are not the pinned ones:\n" + "\n".join(problems) + "\n"
            f"fetch: python -m spark_cep.pipeline.spark.jars fetch {group} --into {folder}"
        )
    return [folder / jar.at.file_name for jar in wanted.jars]


def fetch(groups: Sequence[str], folder: Path, *, repository: str | None = None) -> list[Path]:
    """Make ``folder`` hold every jar of ``groups``, downloading what is missing or different."""
    pinned = [_group(name) for name in groups]
    folder.mkdir(parents=True, exist_ok=True)
    with _exclusive(folder):
        for group in pinned:
            unfit = [jar for jar, _ in _unfit(group.jars, folder)]
            if unfit:
                _fetch_into(unfit, folder, repository)
    return [path for group in pinned for path in resolve(group.name, folder)]


def find_java(environ: Mapping[str, str] = os.environ) -> Path:
    """The ``java`` of JAVA_HOME, or else of PATH; raise StartError when none is new enough."""
    home = environ.get("JAVA_HOME")
    place = f"JAVA_HOME={home}" if home else "PATH"
    path = str(Path(home) / "bin") if home else environ.get("PATH", "")
    java = shutil.which("java", path=path)
    if java is None:
        raise StartError(
            f"no java was found by {place}: install Java {OLDEST_JAVA} or newer, or set JAVA_HOME"
        )
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    if found is None:
        raise StartError(f"{java} (by {place}) does not tell its version: {answer.stderr.strip()}")
    if int(found.group(1)) < OLDEST_JAVA:
        raise StartError(
            f"{java} (by {place}) is Java {found.group(1)}; needed is {OLDEST_JAVA} or newer"
        )
    return Path(java)


def _lock_path() -> Path:
    with resources.as_file(resources.files("spark_cep.pipeline.spark") / LOCK_FILE) as path:
        return path


def _group(name: str) -> Group:
    groups = read_lock()
    if name not in groups:
        raise DependencyError(f"no group of jars is named {name!r}; groups: {', '.join(groups)}")
    return groups[name]


def _sha256(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return None


def _unfit(jars: Iterable[Jar], folder: Path) -> Iterator[tuple[Jar, str | None]]:
    """The jars that are not in the folder as pinned, with the checksum found (None: no file)."""
    for jar in jars:
        found = _sha256(folder / jar.at.file_name)
        if found != jar.sha256:
            yield jar, found


@contextmanager
def _exclusive(folder: Path) -> Iterator[None]:
    """Let one process at a time download; correctness rests on the renames, not on this."""
    with (folder / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fetch_into(jars: Sequence[Jar], folder: Path, repository: str | None) -> None:
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as scratch:
        found = _download([jar.at for jar in jars], Path(scratch), repository, closure=False)
        for jar in jars:
            path = found.get(jar.at)
            checksum = _sha256(path) if path else None
            if path is None or checksum != jar.sha256:
                raise DependencyError(
                    f"{jar.at.file_name} as downloaded is not the pinned jar: expected sha256 "
                    f"{jar.sha256}, found {checksum or 'no file'}"
                )
            path.replace(folder / jar.at.file_name)


def _download(
    roots: Sequence[Coordinates], scratch: Path, repository: str | None, *, closure: bool
) -> dict[Coordinates, Path]:
    """Run Ivy once for all roots; everything it writes is below ``scratch``."""
    scratch = scratch.resolve()
    (scratch / "ivy.xml").write_text(_ivy_module(roots, closure=closure), encoding="utf-8")
    (scratch / "settings.xml").write_text(_ivy_settings(repository, poms=closure), encoding="utf-8")
    out = scratch / "out"
    command = [
        str(find_java()),
        "-XX:-UsePerfData",
        f"-Djava.io.tmpdir={scratch}",
        f"-Divy.default.ivy.user.dir={scratch / 'user'}",
        *("-jar", str(_ivy_jar())),
        *("-settings", str(scratch / "settings.xml")),
        *("-cache", str(scratch / "cache")),
        *("-ivy", str(scratch / "ivy.xml")),
        *("-retrieve", f"{out}/[organisation]/[artifact]/[revision]/[ext]/x(-[classifier])"),
        "-warn",
    ]
    try:
        answer = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=_DOWNLOAD_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise DependencyError(
            f"the download of {len(roots)} jars took longer than {_DOWNLOAD_SECONDS} s"
        ) from error
    if answer.returncode != 0:
        names = ", ".join(root.file_name for root in roots)
        raise DependencyError(f"Ivy could not fetch {names}:\n{answer.stdout.strip()}")
    return {_retrieved(path.relative_to(out)): path for path in out.rglob("*") if path.is_file()}


def _retrieved(path: Path) -> Coordinates:
    group, name, version, extension, last = path.parts
    return Coordinates(group, name, version, last.removeprefix("x").lstrip("-") or None, extension)


def _ivy_jar() -> Path:
    pyspark = importlib.util.find_spec("pyspark")
    places = list(pyspark.submodule_search_locations or ()) if pyspark else []
    for place in places:
        for jar in sorted(Path(place, "jars").glob("ivy-*.jar")):
            return jar
    raise DependencyError("PySpark, which brings the Ivy that downloads jars, is not installed")


def _ivy_module(roots: Iterable[Coordinates], *, closure: bool) -> str:
    rows = []
    for root in roots:
        classifier = f" m:classifier={quoteattr(root.classifier)}" if root.classifier else ""
        extension = quoteattr(root.extension)
        rows.append(
            f"<dependency org={quoteattr(root.group)} name={quoteattr(root.name)} "
            f"rev={quoteattr(root.version)} "
            + (
                'conf="default->master,runtime(*)"/>'
                if closure
                else 'conf="default->default" transitive="false">'
                f"<artifact name={quoteattr(root.name)} type={extension} ext={extension}"
                f"{classifier}/></dependency>"
            )
        )
    return (
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">\n'
        '<info organisation="spark-cep" module="jars"/>\n'
        '<configurations><conf name="default"/></configurations>\n'
        "<dependencies>\n" + "\n".join(rows) + "\n</dependencies>\n</ivy-module>\n"
    )


def _ivy_settings(repository: str | None, *, poms: bool) -> str:
    """One resolver; without ``root`` it is Maven Central. Checksums are ours, so none of Ivy's."""
    root = f" root={quoteattr(repository)}" if repository else ""
    reads = "true" if poms else "false"
    return (
        '<ivysettings><settings defaultResolver="maven"/><resolvers>'
        f'<ibiblio name="maven" m2compatible="true" usepoms="{reads}" useMavenMetadata="false" '
        f'checksums=""{root}/></resolvers></ivysettings>\n'
    )


def _locked(group: Group, scratch: Path, repository: str | None) -> Group:
    """The group with its closure and checksums as the repository has them now."""
    roots = [Coordinates.parse(root) for root in group.roots]
    found = _download(roots, scratch, repository, closure=group.transitive)
    order = sorted(found, key=lambda at: (at.group, at.name)) if group.transitive else roots
    jars = tuple(Jar(at, _sha256(found[at]) or "") for at in order)
    return Group(group.name, group.about, group.roots, group.transitive, jars)


def _render_lock(groups: Iterable[Group]) -> str:
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


_Repository = Annotated[
    str | None,
    typer.Option(envvar="SPARK_CEP_MAVEN_REPOSITORY", help="Instead of Maven Central."),
]
cli = typer.Typer(add_completion=False, no_args_is_help=True, help="The pinned jars of spark-cep.")


@cli.command("fetch")
def _fetch_command(
    groups: Annotated[list[str], typer.Argument(help="Groups of the lock file, as broker.")],
    into: Annotated[Path, typer.Option(help="The folder of jars.")],
    repository: _Repository = None,
) -> None:
    """Download what a folder lacks of the groups, and verify all of it."""
    with _told():
        paths = fetch(groups, into, repository=repository)
    typer.echo(f"{len(paths)} jars verified in {into}")


@cli.command("lock")
def _lock_command(repository: _Repository = None) -> None:
    """Compute each group's jars and checksums again from its roots; rewrite the lock file."""
    path = _lock_path()
    locked = []
    with _told():
        for group in read_lock().values():
            with tempfile.TemporaryDirectory(prefix=".lock-", dir=path.parent) as scratch:
                locked.append(_locked(group, Path(scratch), repository))
    path.write_text(_render_lock(locked), encoding="utf-8")
    typer.echo(f"{path.name}: {sum(len(group.jars) for group in locked)} jars")


@contextmanager
def _told() -> Iterator[None]:
    """Our own errors as one message and exit code 1, without a traceback."""
    try:
        yield
    except SparkCepError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from error


if __name__ == "__main__":
    cli()
