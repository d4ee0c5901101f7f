"""The output of ``spark-cep rules``: rules of a running job, and what changed from set to set."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console

from spark_cep.cli.terminal import table
from spark_cep.errors import printable, printable_lines
from spark_cep.pattern.document.canonical import to_yaml
from spark_cep.pattern.document.loading import LoadedRule
from spark_cep.pattern.tree import Rule
from spark_cep.rules.rule_set import RuleSet
from spark_cep.rules.set_change import SetChange

if TYPE_CHECKING:
    from spark_cep.pipeline.driver.rules.rule_log import LoggedRules

REJECTED = "rejected"
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


def reasons_of(rejected: Iterator[Mapping[str, Any]] | Sequence[Mapping[str, Any]]) -> list[str]:
    """Why these are rejected, with place and underlined line."""
    return [printable_lines(str(row.get("reason"))) for row in rejected]


def changes(sets: Sequence[LoggedRules]) -> list[SetChange | None]:
    """The change that each set brought; ``None`` for one whose predecessor is no longer in the
    log."""
    brought: list[SetChange | None] = []
    before = None
    for logged in sets:
        if before is not None:
            brought.append(SetChange.between(before.rules, logged.rules))
        else:
            brought.append(
                SetChange.between(RuleSet(), logged.rules) if logged.number == 1 else None
            )
        before = logged
    return brought


def history_as_json(sets: Sequence[LoggedRules]) -> str:
    """The sets as one JSON document, the oldest first."""
    return json.dumps(
        [
            {
                "number": logged.number,
                "first_batch": logged.batch,
                "rules": len(logged.rules.rules),
                "changes": None if change is None else _change_as_json(change),
            }
            for logged, change in zip(sets, changes(sets), strict=True)
        ],
        indent=2,
    )


def _change_as_json(change: SetChange) -> dict[str, Any]:
    return {
        "came": [_of(one.rule) for one in change.came],
        "changed": [
            {
                "id": after.rule.id,
                "from_version": before.rule.version,
                "version": after.rule.version,
                "enabled": after.rule.enabled,
            }
            for before, after in change.changed
        ],
        "went": [_of(one.rule) for one in change.went],
        "paused": [
            {"id": one.rule.id, "version": one.rule.version, "by": pause.by, "reason": pause.reason}
            for one, pause in change.paused
        ],
        "resumed": [_of(one.rule) for one in change.resumed],
        "draining": [_of(version.rule) for version in change.draining],
        "drained": [_of(version.rule) for version in change.drained],
    }


def _of(rule: Rule) -> dict[str, Any]:
    return {"id": rule.id, "version": rule.version, "enabled": rule.enabled}


def show_history(sets: Sequence[LoggedRules], console: Console) -> None:
    """Print a line for each set, the oldest first."""
    rows = [
        [str(logged.number), str(logged.batch), str(len(logged.rules.rules)), *_cells(change)]
        for logged, change in zip(sets, changes(sets), strict=True)
    ]
    columns = ("set", "first batch", "rules", "came", "changed", "went")
    table(console, "Rule sets", columns, rows)


def _cells(change: SetChange | None) -> list[str]:
    if change is None:
        return ["?"] * 3
    cells = (
        [_named(one) + ("" if one.rule.enabled else " (off)") for one in change.came],
        [
            *(_changed(before.rule, after.rule) for before, after in change.changed),
            *(f"{_named(one)} (paused)" for one, _ in change.paused),
            *(f"{_named(one)} (resumed)" for one in change.resumed),
            *(f"{_named(version.loaded)} (draining)" for version in change.draining),
            *(f"{_named(version.loaded)} (drained)" for version in change.drained),
        ],
        [_named(one) for one in change.went],
    )
    return [printable(", ".join(cell)) or "-" for cell in cells]


def _named(one: LoadedRule) -> str:
    return f"{one.rule.id} {one.rule.version}"


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


def diff(before: LoggedRules, after: LoggedRules) -> Iterator[str]:
    """The lines of a unified diff from one set to the other, a file for each rule that differs."""
    change = SetChange.between(before.rules, after.rules)
    pairs: list[tuple[Rule | None, Rule | None]] = [
        *((None, one.rule) for one in change.came),
        *((old.rule, new.rule) for old, new in change.changed),
        *((one.rule, None) for one in change.went),
    ]
    for old, new in sorted(pairs, key=lambda pair: next(rule.id for rule in pair if rule)):
        lines = difflib.unified_diff(
            [] if old is None else to_yaml(old).splitlines(),
            [] if new is None else to_yaml(new).splitlines(),
            "/dev/null" if old is None else f"set {before.number}/{old.id}",
            "/dev/null" if new is None else f"set {after.number}/{new.id}",
            lineterm="",
        )
        yield from map(printable, lines)
