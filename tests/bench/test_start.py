"""The figures of starts."""

from __future__ import annotations

from bench.report import starts
from bench.start import AIMS, _median
from spark_cep.observability.start_clock import Phase


def test_starts_are_shown_by_phase() -> None:
    """Medians of runs; a row for each phase, the whole and what is wanted."""
    runs = [
        {"seconds": seconds, "phases": {"query": seconds / 2}, "meanwhile": {},
         "processor": {"jvm": 3.0}}
        for seconds in (4.0, 9.0, 5.0)
    ]  # fmt: skip
    found = {kind: _median(runs) | {"aim": aim} for kind, aim in AIMS.items()}
    lines = starts(found).splitlines()
    assert len(lines) == 2 + len(Phase) + 2 + 1
    assert "| query | 2.50 | 2.50 |" in lines
    assert any("**5.00**" in line for line in lines)
    assert "| at most | 10 | 6 |" in lines
