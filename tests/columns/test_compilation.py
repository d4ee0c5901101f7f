"""What is noticed of a compilation: that it takes long, and when it is over."""

from __future__ import annotations

import pytest
from numba import njit

from spark_cep.columns import compilation
from spark_cep.columns.compilation import compilation_noticed


def test_a_long_compilation_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for all functions of the block; a function that is compiled already is none."""
    monkeypatch.setattr(compilation, "_LONG_SECONDS", -1.0)
    noticed: list[str] = []
    inner = njit(lambda x: x + 1)
    outer = njit(lambda x: inner(x) * 2)

    def begins() -> None:
        noticed.append("begins")

    def ends(seconds: float) -> None:
        noticed.append("ends" if seconds > 0 else "too early")

    with compilation_noticed(begins, ends):
        assert outer(1) == 4
    assert noticed == ["begins", "ends"]
    with compilation_noticed(begins, ends):
        assert outer(2) == 6
    assert noticed == ["begins", "ends"]


def test_a_short_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for it."""
    monkeypatch.setattr(compilation, "_LONG_SECONDS", 60.0)
    noticed: list[object] = []
    with compilation_noticed(lambda: noticed.append("begins"), noticed.append):
        assert njit(lambda x: x + 1)(1) == 2
    assert noticed == []
