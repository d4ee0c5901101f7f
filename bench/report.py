"""Figures for people: Markdown tables, and plots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

#: Of a profile, what is less than this part of the largest stage is left out.
_LEAST_SHARE = 0.01


def text(document: Mapping[str, Any]) -> str:
    """All that one benchmark found."""
    parts = [circumstances(document)]
    if "ratios" in document:
        parts.append(ratios(document["ratios"]))
    for name, found in document.get("profiles", {}).items():
        parts.append(f"Stages, {name}:\n\n{stages(found)}")
    if "profile" in document:
        parts.append(f"Stages:\n\n{stages(document['profile'])}")
    return "\n\n".join(parts) + "\n"


def circumstances(document: Mapping[str, Any]) -> str:
    """Machine and versions in a line."""
    facts = document["facts"]
    said = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in facts.items())
    return f"{document['benchmark']}: {said}; {document['runs_each']} runs each, medians"


def ratios(found: Iterable[Mapping[str, Any]]) -> str:
    """A row for each ratio."""
    rows = [
        [
            one["name"],
            f"{one['events']:,}",
            f"{one['ours']:,}",
            one["other"],
            f"{one['theirs']:,}",
            f"**{one['ratio']:.2f}**",
            f"{one['low']:.2f} to {one['high']:.2f}",
            "" if one["aim"] is None else f"{one['aim']:g}",
        ]
        for one in found
    ]
    head = ["", "events", "ours, events/s", "next to", "events/s", "ratio", "of runs", "aim"]
    return table(head, rows)


def stages(found: Mapping[str, float]) -> str:
    """A row for each stage that matters."""
    least = max(found.values(), default=0.0) * _LEAST_SHARE
    rows = [[name, f"{seconds:.2f}"] for name, seconds in found.items() if seconds >= least]
    return table(["stage", "seconds"], rows)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; columns of figures stand to the right."""
    numbers = [
        bool(rows) and all(row[column][:1].strip("*+-").isdigit() or row[column][:1] in "*+-" or
                           not row[column] for row in rows)
        for column in range(len(head))
    ]  # fmt: skip
    rule = ["---:" if number else "---" for number in numbers]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *rows))
