"""The output of ``spark-cep rules``: rules of a running job, and what changed from set to set."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console

from spark_cep.cli.terminal import table
from spark_cep.compiler.explain.difference import difference
from spark_cep.errors import printable, printable_lines
from spark_cep.pattern.tree import Rule
from spark_cep.rules.rule_set import RuleSet
from spark_cep.rules.set_change import RuleChange, changes_between

if TYPE_CHECKING:
    from spark_cep.pipeline.driver.rules.rule_log import LoggedRules

REJECTED = "rejected"
#: In JSON, by the kinds of changes.
_CHANGES = {"came": "added", "went": "removed"}
_CHANGES |= {kind: kind for kind in ("changed", "paused", "resumed", "draining", "drained")}
_COLUMNS = ("id", "version", "state", "since_batch", "partial_matches", "reason")


def show_rules(rules: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print what ``/rules`` says: the rules, then what is rejected, with its reason."""
    rows = [
        ["-" if row.get(name) is None else printable(str(row[name])) for name in _COLUMNS]
        for row in rules
        if row["state"] != REJECTED
    ]
    table(console, "Rules", [name.replace("_", " ") for name in _COLUMNS], rows)
    reasons = reasons_of(row for row in rules if row["state"] == REJECTED)
    if reasons:
        console.print("\nRejected", style="bold")
        console.print("\n\n".join(reasons), markup=False)


def show_time(event_time: Mapping[str, Any], console: Console) -> None:
    """Print what is wrong with event time, if anything is."""
    note = event_time.get("note")
    if note is not None:
        console.print("\nEvent time", style="bold")
        console.print(printable(str(note)), markup=False)


def reasons_of(rejected: Iterator[Mapping[str, Any]] | Sequence[Mapping[str, Any]]) -> list[str]:
    """Why these are rejected, with place and underlined line."""
    return [printable_lines(str(row.get("reason"))) for row in rejected]


def changes(sets: Sequence[LoggedRules]) -> list[list[RuleChange] | None]:
    """The changes that each set brought; ``None`` for one whose predecessor is no longer in the
    log."""
    first = RuleSet() if sets[0].number == 1 else None
    return [
        None if before is None else changes_between(before, logged.rules)
        for before, logged in zip([first, *(logged.rules for logged in sets)], sets, strict=False)
    ]


def history_as_json(sets: Sequence[LoggedRules]) -> str:
    """The sets as one JSON document, the oldest first."""
    return json.dumps(
        [
            {
                "number": logged.number,
                "first_batch": logged.batch,
                "rules": len(logged.rules.rules),
                "changes": None if changed is None else _changes_as_json(changed),
            }
            for logged, changed in zip(sets, changes(sets), strict=True)
        ],
        indent=2,
    )


def _changes_as_json(changed: Sequence[RuleChange]) -> dict[str, Any]:
    return {
        name: [_change_as_json(change) for change in changed if change.kind == kind]
        for name, kind in _CHANGES.items()
    }


def _change_as_json(change: RuleChange) -> dict[str, Any]:
    rule = change.loaded.rule
    entry = {"id": rule.id, "version": rule.version}
    if change.pause is not None:
        return {**entry, "by": change.pause.by, "reason": change.pause.reason}
    before = {} if change.before is None else {"from_version": change.before.rule.version}
    return {**entry, **before, "enabled": rule.enabled}


def show_history(sets: Sequence[LoggedRules], console: Console) -> None:
    """Print a line for each set, the oldest first."""
    rows = [
        [str(logged.number), str(logged.batch), str(len(logged.rules.rules)), *_cells(changed)]
        for logged, changed in zip(sets, changes(sets), strict=True)
    ]
    columns = ("set", "first batch", "rules", "came", "changed", "went")
    table(console, "Rule sets", columns, rows)


def _cells(changed: Sequence[RuleChange] | None) -> list[str]:
    if changed is None:
        return ["?"] * 3
    cells: dict[str, list[str]] = {"added": [], "changed": [], "removed": []}
    for change in changed:
        rule = change.loaded.rule
        named = f"{rule.id} {rule.version}"
        if change.before is not None:
            cells["changed"].append(_changed(change.before.rule, rule))
        elif change.kind in cells:
            off = change.kind == "added" and not rule.enabled
            cells[change.kind].append(f"{named} (off)" if off else named)
        elif change.kind != "carried":
            cells["changed"].append(f"{named} ({change.kind})")
    return [printable(", ".join(cell)) or "-" for cell in cells.values()]


def _changed(before: Rule, after: Rule) -> str:
    notes = []
    if before.enabled != after.enabled:
        notes.append("on" if after.enabled else "off")
    elif before.version == after.version:
        notes.append("text")
    versions = f"{before.version} → {after.version}"
    if before.version == after.version:
        versions = str(after.version)
    return " ".join([after.id, versions, *(f"({note})" for note in notes)])


@dataclass(frozen=True)
class Side:
    """One side of a comparison, with its name in it."""

    name: str
    rules: RuleSet

    @classmethod
    def of_set(cls, logged: LoggedRules) -> Side:
        """A rule set of the log."""
        return cls(f"set {logged.number}", logged.rules)


def diff(before: Side, after: Side) -> Iterator[str]:
    """The lines of a unified diff from one side to the other, a file for each rule that differs."""
    old_rules, new_rules = before.rules.by_id, after.rules.by_id
    for rule in sorted({*old_rules, *new_rules}):
        old, new = old_rules.get(rule), new_rules.get(rule)
        lines = difflib.unified_diff(
            [] if old is None else old.text.splitlines(),
            [] if new is None else new.text.splitlines(),
            "/dev/null" if old is None else f"{before.name}/{rule}",
            "/dev/null" if new is None else f"{after.name}/{rule}",
            lineterm="",
        )
        yield from map(printable, lines)


def in_words(before: Side, after: Side) -> Iterator[str]:
    """The difference of each rule that differs, in words."""
    old_rules, new_rules = before.rules.by_id, after.rules.by_id
    for rule in sorted({*old_rules, *new_rules}):
        old, new = old_rules.get(rule), new_rules.get(rule)
        if old is None or new is None:
            yield f"{printable(rule)}: is {'new' if old is None else 'gone'}"
        elif old.text != new.text:
            yield f"{printable(rule)}, version {old.rule.version} to {new.rule.version}"
            lines = difference(old.rule, new.rule)
            yield from (f"  {line}" for line in lines or ["its results are the same"])
