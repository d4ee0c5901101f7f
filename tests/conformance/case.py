"""A case as its file has it: its pattern as a rule document, its feed as batches of records."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from spark_cep.compiler.rule_set import RuleSetPlan, compile_rules
from spark_cep.model import Coordinates
from spark_cep.pattern.document.loading import load_rules
from tests.reference.local import Record

Case = Mapping[str, Any]
#: What writes a case as a rule document.
Writer = Callable[[Case], dict[str, Any]]


def cases(file: Path) -> Iterator[Case]:
    """The cases of a file, one JSON object a line."""
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)


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


def plan_of(case: Case, written: Writer = document) -> RuleSetPlan:
    """The case's rule, as ``written`` says it, loaded and compiled; RuleSetError where it is
    refused."""
    loaded = load_rules(json.dumps(written(case)), case["id"])
    return compile_rules(one.rule for one in loaded)


def feed(case: Case) -> Iterator[tuple[list[Record], int | None]]:
    """The feed as batches: the records before each watermark, and ``None`` behind the last one.

    A record's offset is the event's id.
    """
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
