"""The list of log events in docs/logs.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "logs.md"

_ROW = re.compile(r"^\| `(\w+)` \| ([a-z, ]+) \| [^|]+ \|(.*)\|$", re.MULTILINE)


class Listed(NamedTuple):
    """Levels and names of values that lines of one event have."""

    levels: frozenset[str]
    values: frozenset[str]


def events() -> dict[str, Listed]:
    """The events by name."""
    _, _, rows = PAGE.read_text("utf-8").partition("| event | level | when | values |")
    found = _ROW.findall(rows)
    assert len(found) == len(rows.strip().splitlines()) - 1
    listed = {
        name: Listed(frozenset(levels.split(", ")), frozenset(re.findall(r"`(\w+)`", values)))
        for name, levels, values in found
    }
    assert len(listed) == len(found), "an event is listed twice"
    return listed
