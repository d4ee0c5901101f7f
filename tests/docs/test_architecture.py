"""The page on architecture names what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_PAGE = (_ROOT / "docs" / "architecture.md").read_text("utf-8")
_PACKAGE = _ROOT / "service" / "spark_cep"
#: The page leaves out what its sections are about.
_ABOVE = ("", "pipeline/", "pipeline/driver/")
_FIRST = "codecs|columns|compiler|decode|driver|match|matcher|pattern|pipeline|programs|rules|wire"
_NAMES = sorted(set(re.findall(rf"`((?:{_FIRST})(?:\.[a-z_]+)+)`", _PAGE)))


@pytest.mark.parametrize("name", _NAMES)
def test_modules_exist(name: str) -> None:
    """A module or package that the page names."""
    places = [_PACKAGE / above / name.replace(".", "/") for above in _ABOVE]
    assert any(place.is_dir() or place.with_suffix(".py").is_file() for place in places)


def test_every_package_is_in_the_table() -> None:
    """The table has each part of the package."""
    (table,) = re.findall(r"^\| package \|.*?\n\n", _PAGE, re.MULTILINE | re.DOTALL)
    parts = {path.stem for path in _PACKAGE.iterdir() if not path.name.startswith("_")}
    assert parts - {"py", "schemas"} <= set(re.findall(r"`(?:spark_cep\.)?([a-z_]+)`", table))
