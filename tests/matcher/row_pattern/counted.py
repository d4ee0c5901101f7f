"""How often a method is called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest


@dataclass
class Calls:
    """The number of calls so far."""

    number: int = 0


def counted(monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> Calls:
    """Count the calls of a method from now on."""
    calls, real = Calls(), getattr(owner, name)

    def call(*given: Any) -> Any:
        calls.number += 1
        return real(*given)

    monkeypatch.setattr(owner, name, call)
    return calls
