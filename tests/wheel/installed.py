"""The wheel as a user installs it: built, and put into a virtual environment of its own.

To install Spark and the rest once more would take minutes. So the environment gets links to the
packages of this one, and to no others than those that the wheel requires, and what they require:
neither this checkout nor a tool of tests can be imported there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
#: What the image is built from: see .dockerignore.
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "service", "schemas")
_SECONDS = 300
_PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")


def tracked(*places: str) -> set[str]:
    """The files of the repository below these places, or all."""
    git = shutil.which("git")
    assert git is not None
    listed = subprocess.run(
        [git, "ls-files", *places], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return set(listed.stdout.splitlines())


def copied(files: Iterable[str], into: Path) -> Path:
    """A folder with these files of the repository; links stay links."""
    for name in files:
        (into / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, into / name, follow_symlinks=False)
    return into


def built_wheel(sources: Path, into: Path) -> Path:
    """The wheel of a folder or of an sdist."""
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(into))
    subprocess.run([*_PIP, "wheel", *options, str(sources)], check=True, timeout=_SECONDS)
    (wheel,) = into.glob("*.whl")
    return wheel


def built_sdist(sources: Path, into: Path) -> Path:
    """The sdist of a folder."""
    program = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
    subprocess.run(
        [sys.executable, "-c", program, str(into)],
        cwd=sources,
        check=True,
        timeout=_SECONDS,
        capture_output=True,
    )
    (sdist,) = into.glob("*.tar.gz")
    return sdist


def contents(wheel: Path) -> set[str]:
    """The names of a wheel's files."""
    with zipfile.ZipFile(wheel) as opened:
        return set(opened.namelist())


@dataclass(frozen=True)
class Environment:
    """A virtual environment with the wheel in it. ``folder``: empty, where commands are run;
    ``path``: folders of a user's own packages."""

    root: Path
    folder: Path
    path: tuple[Path, ...] = ()

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.root / "bin" / "python"

    @property
    def command(self) -> Path:
        """Its ``spark-cep``."""
        return self.root / "bin" / "spark-cep"

    @property
    def packages(self) -> Path:
        """The folder of its packages."""
        (found,) = self.root.glob("lib/python*/site-packages")
        return found

    def variables(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """The variables of a process in it."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "SPARK_"))}
        path = os.pathsep.join(map(str, self.path))
        return {
            **kept,
            "PYTHONPATH": path,
            "PYTHONWARNINGS": "error::ImportWarning",
            **(more or {}),
        }

    def run(
        self, *words: str | Path, more: Mapping[str, str] | None = None, seconds: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """A process that has ended."""
        return subprocess.run(
            list(map(str, words)),
            cwd=self.folder,
            env=self.variables(more),
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )


def installed(wheel: Path, environment: Environment, extras: Iterable[str] = ()) -> None:
    """Make the environment: the wheel by pip, links to what it requires, and the compiled code of
    this checkout, which is tied to the compiled sources and would take a minute to make again."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment.root], check=True)
    install = [*_PIP, "--python", str(environment.python), "install", "--quiet", "--no-index"]
    subprocess.run([*install, "--no-deps", str(wheel)], check=True, timeout=_SECONDS)
    (service,) = distributions(name="spark-cep", path=[str(environment.packages)])
    for required in _required_by(service, extras):
        for top in _top_levels(required):
            link = environment.packages / top
            if not link.exists():
                link.symlink_to(Path(str(required.locate_file(top))).resolve())
    source = ROOT / "service" / "spark_cep"
    for compiled in (*source.glob("**/__pycache__/*.nbi"), *source.glob("**/__pycache__/*.nbc")):
        target = environment.packages / "spark_cep" / compiled.relative_to(source)
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(compiled, target)


def _required_by(service: Distribution, extras: Iterable[str]) -> list[Distribution]:
    """The distributions that are installed together with one, by their names."""
    found: dict[str, Distribution] = {}
    waiting = [(service, extra) for extra in ("", *extras)]
    seen = set()
    while waiting:
        by, extra = waiting.pop()
        for text in by.requires or ():
            each = Requirement(text)
            if each.marker is not None and not each.marker.evaluate({"extra": extra}):
                continue
            found.setdefault(each.name, distribution(each.name))
            for wanted in ("", *each.extras):
                if (each.name, wanted) not in seen:
                    seen.add((each.name, wanted))
                    waiting.append((found[each.name], wanted))
    return list(found.values())


def _top_levels(package: Distribution) -> set[str]:
    """The names that a distribution has in the folder of packages."""
    names = {file.parts[0] for file in package.files or ()}
    return names - {"..", "__pycache__"}
