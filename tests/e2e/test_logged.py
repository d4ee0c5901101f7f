"""What tests read of the log of a command that is still writing it."""

from __future__ import annotations

from tests.e2e.command import logged


def test_a_line_counts_once_it_is_whole() -> None:
    """The last one may be written in parts; what is no event is passed over."""
    whole = 'Picked up options\n{"event": "a", "n": 1}\n{"event": "b"}\n{"event": "a", "n": 2}'
    assert logged(whole, "a") == [{"event": "a", "n": 1}]
    assert [line["n"] for line in logged(whole + "\n", "a")] == [1, 2]
    assert logged(whole[:-4], "b") == [{"event": "b"}]
    assert logged("", "a") == []
