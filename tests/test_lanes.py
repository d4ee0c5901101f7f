"""Each test is run in one lane of `make test`, and in no second one."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LANES = ("test-unit", "test-slow", "test-wheel", "test-waiting", "test-processes", "test-others")


@pytest.fixture(scope="module")
def commands() -> list[list[str]]:
    """What pytest is called with, by lane."""
    make = shutil.which("make")
    assert make is not None
    dry_run = subprocess.run(
        [make, "--dry-run", *LANES], cwd=ROOT, check=True, capture_output=True, text=True
    )
    lines = [shlex.split(line) for line in dry_run.stdout.splitlines() if " -m pytest " in line]
    return [words[words.index("pytest") + 1 :] for words in lines]


def _values(words: list[str], option: str) -> list[str]:
    return [words[n + 1] for n, word in enumerate(words) if word == option]


def _places(words: list[str]) -> list[str]:
    before = ["", *words]
    pairs = zip(before, words, strict=False)
    return [word for option, word in pairs if word.startswith("tests") and option != "--ignore"]


def _takes(words: list[str], file: str) -> bool:
    """Whether a command looks into a file."""

    def inside(place: str) -> bool:
        return file == place or file.startswith(f"{place}/")

    places = _places(words) or ["tests"]
    return any(map(inside, places)) and not any(map(inside, _values(words, "--ignore")))


def test_every_file_is_in_one_lane(commands: list[list[str]]) -> None:
    """Its unit tests are run once, and so are its slow ones and its other tests."""
    files = [path.relative_to(ROOT).as_posix() for path in ROOT.glob("tests/**/test_*.py")]
    assert len(files) > 200
    for file in files:
        marks = sorted(_values(words, "-m")[-1] for words in commands if _takes(words, file))
        assert marks == ["not unit and not slow", "slow", "unit"], file


def test_every_place_is_there(commands: list[list[str]]) -> None:
    """No lane names a file or folder that is gone."""
    named = {word for words in commands for word in words if word.startswith("tests/")}
    assert [place for place in sorted(named) if not (ROOT / place).exists()] == []


def test_a_unit_test_has_no_other_mark(request: pytest.FixtureRequest) -> None:
    """The mark is given to what has none; this test has none."""
    assert request.node.get_closest_marker("unit") is not None
