"""What CONTRIBUTING.md names is there: files, modules, targets of make."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
CODE = ROOT / "service" / "spark_cep"
_SPAN = re.compile(r"`([^`\n]+)`")
#: What is written, or a place to be filled in.
_NOT_YET = re.compile(r"^build/|^\.work|^\.venv|[<*…]")

PATHS = sorted(
    {each for each in _SPAN.findall(PAGE) if re.fullmatch(r"[\w.<>*/-]+/[\w.<>*/-]*", each)}
)
MODULES = sorted(set(re.findall(r"python -m ([\w.]+)", PAGE)) - {"pytest"})
TARGETS = set(re.findall(r"\bmake ([a-z]+(?:-[a-z0-9]+)*)", " ".join(_SPAN.findall(PAGE))))


@pytest.mark.parametrize("path", [each for each in PATHS if not _NOT_YET.search(each)])
def test_files_are_there(path: str) -> None:
    """Each file and folder stands below the repository's root, or is a part of the service."""
    assert (ROOT / path).exists() or (CODE / path).exists()


@pytest.mark.parametrize("path", [each for each in PATHS if re.search(r"[<*]", each)])
def test_patterns_find_files(path: str) -> None:
    """So does at least one file of each pattern."""
    pattern = re.sub(r"<\w+>", "*", path)
    assert [*ROOT.glob(pattern), *CODE.glob(pattern)]


@pytest.mark.parametrize("module", MODULES)
def test_modules_are_there(module: str) -> None:
    """Each command's module is found."""
    assert find_spec(module) is not None


def test_targets_are_told_of() -> None:
    """The page names the targets that there are, and those that ``make help`` shows."""
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert set(re.findall(r"^([a-z0-9-]+):", makefile, re.MULTILINE)) >= TARGETS
    assert set(re.findall(r"^([a-z0-9-]+):.*## ", makefile, re.MULTILINE)) - {"help"} <= TARGETS


def test_there_is_something() -> None:
    """Paths and modules have been found."""
    assert len(PATHS) > 50
    assert len(MODULES) > 10
