"""A case's pattern as Ververica's JSON, in a rule.

Conditions on the event alone become Aviator expressions, whole or in parts joined by the classes
``RichAndCondition`` and the like; those that look back are Java classes whose SQL stands beside.
Groups are called as Java calls them: by the name of their last node.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final
from zlib import crc32

from spark_cep.pattern.expressions import parse
from spark_cep.pattern.expressions.nodes import Call, Column, Literal, Node
from tests.conformance.case import Case

_EDGES: Final = {
    "next": "STRICT",
    "followed_by": "SKIP_TILL_NEXT",
    "followed_by_any": "SKIP_TILL_ANY",
    "not_next": "NOT_NEXT",
    "not_followed_by": "NOT_FOLLOW",
}
_LOOPS: Final = {"consecutive": "STRICT", "combinations": "SKIP_TILL_ANY"}
_RICH: Final = {"AND": "RichAndCondition", "OR": "RichOrCondition", "NOT": "RichNotCondition"}
_SIGNS: Final = {"AND": "&&", "OR": "||", "=": "==", "<>": "!="}
_PACKAGE: Final = "org.apache.flink.cep.pattern.conditions."
_SINGLE: Final = {"consumingStrategy": "SKIP_TILL_NEXT", "properties": ["SINGLE"]}


def document(case: Case) -> dict[str, Any]:
    """The case as a rule with the JSON, every second time as text."""
    writer = _Writer(case)
    graph = writer.graph(case["pattern"])
    within, skip = case.get("within"), case["after_match"]
    time = within and {"unit": "MILLISECONDS", "size": within["ms"]}
    graph["window"] = within and {"type": within["type"].upper(), "time": time}
    graph["afterMatchStrategy"] = {
        "type": skip["strategy"].upper(),
        "patternName": skip.get("step"),
    }
    number = crc32(case["id"].encode())
    rule = {"id": case["id"], "key": "key", "ververica": json.dumps(graph) if number % 2 else graph}
    return {**rule, "java_classes": writer.classes} if writer.classes else rule


class _Writer:
    """Writes the graphs of one case."""

    def __init__(self, case: Case) -> None:
        self.classes: dict[str, str] = {}
        self._names = [step["name"] for step in _all_steps(case["pattern"]) if step.get("name")]
        self._in_parts = crc32(case["id"].encode()) % 3 == 0

    def graph(self, steps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Nodes in Java's order, the last one first, and the edges between them."""
        nodes = [self._node(step) for step in steps]
        edges = [
            {"source": a["name"], "target": b["name"], "type": _EDGES[step["contiguity"]]}
            for a, b, step in zip(nodes, nodes[1:], steps[1:], strict=False)
        ]
        return {
            "name": nodes[-1]["name"],
            "type": "COMPOSITE",
            "version": 1,
            "quantifier": _SINGLE,
            "condition": None,
            "nodes": nodes[::-1],
            "edges": edges[::-1],
            "window": None,
            "afterMatchStrategy": None,
        }

    def _node(self, step: Mapping[str, Any]) -> dict[str, Any]:
        quantifier = self._quantifier(step)
        condition = self._condition(step.get("where"))
        if step.get("group"):
            graph = self.graph(step["group"])
            return {**graph, "quantifier": quantifier, "condition": condition}
        return {
            "name": step["name"],
            "type": "ATOMIC",
            "quantifier": quantifier,
            "condition": condition,
        }

    def _quantifier(self, step: Mapping[str, Any]) -> dict[str, Any]:
        times, properties = step.get("times"), ["SINGLE"]
        if times:
            properties = ["LOOPING" if times[1] is None else "TIMES"]
        properties += [word.upper() for word in ("optional", "greedy") if step.get(word)]
        return {
            "consumingStrategy": _LOOPS.get(step.get("loop") or "", "SKIP_TILL_NEXT"),
            "properties": properties,
            "times": times and {"from": times[0], "to": times[1] or times[0], "windowTime": None},
            "untilCondition": self._condition(step.get("until")),
        }

    def _condition(self, text: str | None) -> dict[str, Any] | None:
        if text is None:
            return None
        return self._of_node(parse(text, steps=frozenset(self._names)).node, text)

    def _of_node(self, node: Node, text: str) -> dict[str, Any]:
        expression = aviator(node)
        if expression is None:
            name = f"com.example.Condition{len(self.classes)}"
            self.classes[name] = text
            return {"type": "CLASS", "className": name}
        if self._in_parts and isinstance(node, Call) and node.operator in _RICH:
            nested = [self._of_node(part, "") for part in node.arguments]
            name = _PACKAGE + _RICH[node.operator]
            return {"type": "CLASS", "className": name, "nestedConditions": nested}
        return {"type": "AVIATOR", "expression": expression}


def aviator(node: Node) -> str | None:
    """A condition on the event as Aviator writes it; ``None`` where it looks back."""
    match node:
        case Column(path=path):
            return ".".join(path)
        case Literal(value=value):
            return repr(value)
        case Call(operator="NOT", arguments=(operand,)):
            inside = aviator(operand)
            return None if inside is None else f"!({inside})"
        case Call(operator=operator, arguments=arguments):
            parts = [aviator(part) for part in arguments]
            sign = f" {_SIGNS.get(operator, operator)} "
            known = [f"({p})" if operator in _RICH else p for p in parts if p is not None]
            return sign.join(known) if len(known) == len(parts) else None
    return None


def _all_steps(steps: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [found for step in steps for found in (step, *_all_steps(step.get("group") or []))]
