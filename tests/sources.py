"""The modules of the package as syntax trees, for tests that look at all of them."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SERVICE = ROOT / "service"


@cache
def trees() -> Mapping[Path, ast.Module]:
    """The tree of each module."""
    return {path: ast.parse(path.read_text("utf-8")) for path in sorted(SERVICE.rglob("*.py"))}
