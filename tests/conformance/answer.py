"""What a case is answered, and how two answers differ.

Matches and timeouts are compared as sets of event ids by step, with the deadline of a timeout and,
under ``no_skip`` alone, the time of a match; late events by id. Ours must not repeat themselves,
Flink's may.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.conformance.case import Case

#: Event ids by step, and the time of the match or timeout.
Taken = tuple[Mapping[str, Sequence[int]], int]


@dataclass
class Answer:
    """All that came of one case; ``refused``: why its rule was not even loaded."""

    matches: list[Taken] = field(default_factory=list)
    timeouts: list[Taken] = field(default_factory=list)
    late: list[int] = field(default_factory=list)
    refused: str | None = None


def expected(case: Case) -> Answer:
    """Flink's answer."""
    if "invalid" in case:
        return Answer(refused=case["invalid"])
    expect = case["expect"]
    return Answer(
        [(match["steps"], match["at"]) for match in expect["matches"]],
        [(timeout["steps"], timeout["at"]) for timeout in expect["timeouts"]],
        expect["late"],
    )


def compare(case: Case, got: Answer) -> str | None:
    """How ``got`` differs from Flink's answer, as text; ``None`` when it does not."""
    wanted = expected(case)
    if wanted.refused is not None or got.refused is not None:
        return _difference_in_refusal(wanted, got)
    timed = case["after_match"]["strategy"] == "no_skip"
    lines = [
        _difference_in("matches", _texts(wanted.matches, timed), _texts(got.matches, timed)),
        _difference_in("timeouts", _texts(wanted.timeouts), _texts(got.timeouts)),
        _difference_in("late", [str(i) for i in wanted.late], [str(i) for i in got.late]),
    ]
    return "\n".join(line for line in lines if line) or None


def _difference_in_refusal(wanted: Answer, got: Answer) -> str | None:
    if wanted.refused is None:
        return f"  expected: an answer\n  got: refused: {got.refused}"
    if got.refused is None:
        return f"  expected: refused: {wanted.refused}\n  got: accepted"
    return None


def _difference_in(what: str, wanted: Sequence[str], got: Sequence[str]) -> str | None:
    missing = sorted(set(wanted) - set(got))
    extra = sorted(set(got) - set(wanted))
    repeated = sorted({text for text in got if got.count(text) > 1})
    if not (missing or extra or repeated):
        return None
    found = {"missing": missing, "too many": extra, "repeated": repeated}
    lines = [f"    {name}: {', '.join(texts)}" for name, texts in found.items() if texts]
    return "\n".join(
        [
            f"  {what}",
            f"    expected: {', '.join(sorted(set(wanted))) or 'none'}",
            f"    got: {', '.join(sorted(got)) or 'none'}",
            *lines,
        ]
    )


def _texts(taken: Iterable[Taken], timed: bool = True) -> list[str]:
    return [
        json.dumps({name: list(ids) for name, ids in steps.items()}, sort_keys=True)
        + (f" at {at}" if timed else "")
        for steps, at in taken
    ]
