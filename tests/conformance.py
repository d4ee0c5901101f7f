"""Runs a file of Flink's answers through rule loading and matcher.

``python -m tests.conformance FILE``: each case that differs is printed with pattern, feed,
expected and got; the last line is ``N passed, N failed``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from service.compiler.rule_set import RuleSetPlan, compile_rules
from service.errors import RuleSetError
from service.matcher.local import LocalJob, Record
from service.model import Coordinates, Match, Timeout
from service.pattern.document import load_rules

Case = Mapping[str, Any]
END_OF_TIME = 1 << 60


def document(case: Case) -> dict[str, Any]:
    """The case's pattern in the rule language."""
    rule: dict[str, Any] = {"id": case["id"], "version": 1, "key": "key"}
    groups = count(1)
    rule["pattern"] = [_step(step, groups) for step in case["pattern"]]
    within = case.get("within")
    if within:
        length = f"{within['ms']} ms"
        rule["within"] = length if within["type"] == "first_and_last" else {"gap": length}
    skip = case["after_match"]
    if skip.get("step"):
        rule["after_match"] = {skip["strategy"]: skip["step"]}
    else:
        rule["after_match"] = skip["strategy"]
    return rule


def _step(step: Mapping[str, Any], groups: Iterator[int]) -> dict[str, Any]:
    made: dict[str, Any] = {"step": step.get("name") or f"group_{next(groups)}"}
    if step.get("contiguity"):
        made["after"] = step["contiguity"]
    for name in ("where", "loop", "greedy", "optional", "until"):
        if step.get(name) is not None:
            made[name] = step[name]
    if step.get("times"):
        low, high = step["times"]
        made["times"] = f"{low}+" if high is None else f"{low}..{high}"
    if step.get("group"):
        made["group"] = [_step(inner, groups) for inner in step["group"]]
    return made


def plan_of(case: Case) -> RuleSetPlan:
    """The case's rule, loaded and compiled; RuleSetError where it is refused."""
    loaded = load_rules(json.dumps(document(case)), case["id"])
    return compile_rules(one.rule for one in loaded)


def feed(case: Case) -> Iterator[tuple[list[Record], int | None]]:
    """The feed as batches: the records before each watermark."""
    batch: list[Record] = []
    for item in case["feed"]:
        if "wm" in item:
            yield batch, item["wm"]
            batch = []
        else:
            values = {name: item.get(name) for name in ("key", "name", "price", "id")}
            batch.append(Record(Coordinates("t", 0, item["id"]), item["t"], values))
    if batch:
        yield batch, None


def run(case: Case) -> tuple[list[Match], list[Timeout], list[int]]:
    """The engine's answers to a case."""
    job = LocalJob(plan_of(case))
    for records, watermark in feed(case):
        job.advance(records, job.watermark if watermark is None else watermark)
        job.reload()
    late = [event.at.offset for event in job.late]
    return job.outputs.matches, job.outputs.timeouts, late


def _answer(steps: Mapping[str, Sequence[Any]], at: int | None) -> str:
    ids = {name: [getattr(e, "at", e) for e in events] for name, events in steps.items()}
    offsets = {name: [getattr(at, "offset", at) for at in events] for name, events in ids.items()}
    return json.dumps([offsets, at], sort_keys=True)


def difference(case: Case) -> str | None:
    """How the engine's answers differ from Flink's; ``None`` when they do not."""
    if "invalid" in case:
        try:
            plan_of(case)
        except RuleSetError:
            return None
        return f"expected to be refused ({case['invalid']}), was accepted"
    expect = case["expect"]
    timed = case["after_match"]["strategy"] == "no_skip"
    try:
        matches, timeouts, late = run(case)
    except RuleSetError as error:
        return f"refused: {error}"
    got: dict[str, list[Any]] = {
        "matches": sorted(_answer(m.steps, m.time if timed else None) for m in matches),
        "timeouts": sorted(_answer(t.steps, t.deadline) for t in timeouts),
        "late": sorted(late),
    }
    wanted: dict[str, list[Any]] = {
        "matches": sorted(
            {_answer(m["steps"], m["at"] if timed else None) for m in expect["matches"]}
        ),
        "timeouts": sorted({_answer(t["steps"], t["at"]) for t in expect["timeouts"]}),
        "late": sorted(expect["late"]),
    }
    if got == wanted:
        return None
    lines = []
    for what, given in got.items():
        missing = [x for x in wanted[what] if x not in given]
        extra = [x for x in given if x not in wanted[what]]
        twice = len(given) - len(set(map(str, given)))
        if missing or extra or twice:
            lines.append(f"  {what}: missing {missing}; too many {extra}; repeated {twice}")
    return "\n".join(lines)


def cases(file: Path) -> Iterator[Case]:
    """The cases of a file, one JSON object a line."""
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)


def main(arguments: list[str]) -> int:
    """Run the files named; returns the exit code."""
    passed = failed = 0
    for name in arguments:
        for case in cases(Path(name)):
            found = difference(case)
            if found is None:
                passed += 1
                continue
            failed += 1
            print(f"{case['id']}\n  pattern: {json.dumps(document(case))}")
            print(f"  feed: {json.dumps(case['feed'])}\n{found}\n")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
