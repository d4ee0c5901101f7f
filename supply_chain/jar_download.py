"""Downloads of the pinned jars, and their checksums computed again.

Downloads go through the Ivy that PySpark ships (PySpark itself is not imported), from Maven Central
or from another repository. Guarantees:

* :func:`fetch` puts a jar in place only after its checksum was verified, by a rename within the
  folder; processes may fetch into one folder at the same time. Nothing is written elsewhere.
* A jar that is there and right is never fetched again, so a filled folder needs no network.
"""

from __future__ import annotations

import fcntl
import importlib.util
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from xml.sax.saxutils import quoteattr

from supply_chain.errors import DependencyError
from supply_chain.jars import Coordinates, Group, Jar, group_named, resolve, sha256, unfit
from supply_chain.java import find_java

_DOWNLOAD_SECONDS = 1800


def fetch(groups: Sequence[str], folder: Path, *, repository: str | None = None) -> list[Path]:
    """Make ``folder`` hold every jar of ``groups``, downloading what is missing or different."""
    pinned = [group_named(name) for name in groups]
    folder.mkdir(parents=True, exist_ok=True)
    with _exclusive(folder):
        for group in pinned:
            lacking = [jar for jar, _ in unfit(group.jars, folder)]
            if lacking:
                _fetch_into(lacking, folder, repository)
    return [path for group in pinned for path in resolve(group.name, folder)]


def locked(group: Group, *, repository: str | None = None) -> Group:
    """The group with its closure and checksums as the repository has them now."""
    roots = [Coordinates.parse(root) for root in group.roots]
    with tempfile.TemporaryDirectory(prefix="lock-jars-") as scratch:
        found = _download(roots, Path(scratch), repository, closure=group.transitive)
        order = sorted(found, key=lambda at: (at.group, at.name)) if group.transitive else roots
        jars = tuple(Jar(at, sha256(found[at]) or "") for at in order)
    return Group(group.name, group.about, group.roots, group.transitive, jars)


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
            checksum = sha256(path) if path else None
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
