"""Builds a program on Flink's libraries with Maven, and says how to start it.

Maven is asked only when the sources changed. Without Maven, Java or network,
:class:`FlinkUnavailableError` says why.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from supply_chain.errors import DependencyError
from supply_chain.java import find_java

_BUILD_SECONDS = 900


class FlinkUnavailableError(Exception):
    """Flink cannot be measured here; the message is the reason."""


@dataclass(frozen=True)
class FlinkProgram:
    """A program, built into ``folder``."""

    java: Path
    folder: Path
    version: str

    def command(self, options: tuple[str, ...], main: str, *arguments: str) -> list[str]:
        """What starts the class ``main``; ``options`` are the JVM's."""
        path = f"{self.folder / 'classes'}:{self.folder / 'lib'}/*"
        return [str(self.java), *options, "-cp", path, main, *arguments]


def build(project: Path, folder: Path) -> FlinkProgram:
    """Compile ``project`` and fetch its jars into ``folder``, unless that was done."""
    try:
        java = find_java()
    except DependencyError as error:
        raise FlinkUnavailableError(str(error)) from error
    pom = (project / "pom.xml").read_text("utf-8")
    found = re.search(r"<flink\.version>(.+?)</flink\.version>", pom)
    if found is None:
        raise ValueError(f"{project.name}/pom.xml does not tell Flink's version")
    stamp = folder / "built"
    state = _fingerprint(project)
    if not stamp.exists() or stamp.read_text("ascii") != state:
        shutil.rmtree(folder, ignore_errors=True)
        _maven(project, folder)
        stamp.write_text(state, "ascii")
    return FlinkProgram(java, folder, found.group(1))


def _fingerprint(project: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted([project / "pom.xml", *project.rglob("*.java")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _maven(project: Path, folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise FlinkUnavailableError("Maven (mvn) was not found")
    command = [
        *(maven, "--quiet", "--batch-mode", "--file", str(project / "pom.xml")),
        f"-Doutput={folder}",
        f"-Dmaven.repo.local={folder.parent / 'maven'}",
        *("compile", "dependency:copy-dependencies"),
    ]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_BUILD_SECONDS
        )
    except subprocess.TimeoutExpired as error:
        raise FlinkUnavailableError(f"Maven took longer than {_BUILD_SECONDS} s") from error
    if answer.returncode != 0:
        lines = [line for line in answer.stdout.splitlines() if "ERROR" in line]
        said = lines[0].partition("ERROR] ")[2] if lines else f"exit code {answer.returncode}"
        raise FlinkUnavailableError(f"Maven could not build its side: {said}")
