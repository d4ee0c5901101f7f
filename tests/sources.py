"""The modules of the package as syntax trees, for tests that look at all of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SERVICE = ROOT / "service"


@cache
def texts() -> dict[Path, str]:
    """The text of each module."""
    return {path: path.read_text("utf-8") for path in sorted(SERVICE.rglob("*.py"))}


def trees(pattern: str) -> Iterator[tuple[Path, ast.Module]]:
    """Yield the tree of each module in which the pattern is found."""
    for path, text in texts().items():
        if re.search(pattern, text, re.MULTILINE):
            yield path, tree_of(path)


@cache
def tree_of(path: Path) -> ast.Module:
    """The tree of a module."""
    return ast.parse(texts()[path])
