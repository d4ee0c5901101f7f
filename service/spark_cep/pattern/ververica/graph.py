"""A graph of nodes and edges as a list of steps.

A step knows where in the JSON its parts come from (``Steps.origins``), so that later
problems can name the place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from spark_cep.documents.places import Path
from spark_cep.pattern.ververica.conditions import ConditionReader, Selection
from spark_cep.pattern.ververica.source import GraphSource

_Json = Mapping[str, Any]

_AFTER: Final = {
    "STRICT": "next",
    "SKIP_TILL_NEXT": "followed_by",
    "SKIP_TILL_ANY": "followed_by_any",
    "NOT_NEXT": "not_next",
    "NOT_FOLLOW": "not_followed_by",
}
_LOOP: Final = {"STRICT": "consecutive", "SKIP_TILL_ANY": "combinations"}
_QUANTIFIER_ORIGINS: Final[Mapping[str, Path]] = {
    "times": ("times",),
    "gap": ("times", "windowTime"),
    "loop": ("consumingStrategy",),
    "optional": ("properties",),
    "greedy": ("properties",),
    "until": ("untilCondition",),
}
_UNITS: Final = {"MILLISECONDS": "ms"}


@dataclass(slots=True)
class Steps:
    """Makes the fields ``pattern``, ``within`` and ``after_match`` of a rule.

    Args:
        conditions: What reads the conditions.
        source: The JSON, which notes what has no counterpart.
        origins: The path in the JSON of each part of the rule, by its path in the rule.
    """

    conditions: ConditionReader
    source: GraphSource
    origins: dict[Path, Path] = field(default_factory=dict)
    _names: set[str] = field(default_factory=set)
    _outermost: _Json | None = None

    def rule_fields(self, graph: _Json) -> dict[str, Any]:
        """The fields for a graph of the right shape."""
        if graph["type"] != "COMPOSITE":
            self.source.refuse(("type",), "the outermost pattern must be `COMPOSITE`")
        if graph.get("condition") is not None:
            self.source.refuse(("condition",), "a graph has no condition, its nodes have")
        self._names = set(node_names(graph))
        self._outermost = graph.get("afterMatchStrategy")
        fields: dict[str, Any] = {"pattern": self._list(graph, (), ("pattern",))}
        if graph.get("window") is not None:
            length = _duration(graph["window"]["time"])
            gap = graph["window"]["type"] == "PREVIOUS_AND_CURRENT"
            fields["within"] = {"gap": length} if gap else length
            self.origins[("within",)] = ("window",)
        if graph.get("afterMatchStrategy") is not None:
            fields["after_match"] = self._after_match(graph["afterMatchStrategy"])
            self.origins[("after_match",)] = ("afterMatchStrategy",)
        return fields

    def _after_match(self, strategy: _Json) -> str | dict[str, str]:
        name, target = strategy["type"].lower(), strategy.get("patternName")
        if name not in ("skip_to_first", "skip_to_last"):
            return str(name)
        if target is None:
            path = ("afterMatchStrategy",)
            self.source.refuse(path, f"`{strategy['type']}` needs `patternName`")
            return "no_skip"
        return {name: target}

    def _list(self, graph: _Json, path: Path, here: Path) -> list[dict[str, Any]]:
        """The steps of a graph at ``path``, which become those at ``here``."""
        steps = []
        for place, (number, edge) in enumerate(self._order(graph, path)):
            node = graph["nodes"][number]
            step_path = (*here, place)
            after = None if edge is None else _AFTER[graph["edges"][edge]["type"]]
            if edge is not None:
                self.origins[(*step_path, "after")] = (*path, "edges", edge, "type")
            steps.append(self._step(node, (*path, "nodes", number), step_path, after))
        return steps

    def _order(self, graph: _Json, path: Path) -> list[tuple[int, int | None]]:
        """The nodes by number, in their order, each with the edge that leads to it; where there is
        no order, as they are written, so that each is looked at."""
        nodes, edges = graph.get("nodes"), graph.get("edges") or []
        if not nodes:
            self.source.refuse(path, "`COMPOSITE` needs `nodes` and `edges`")
            return []
        unordered: list[tuple[int, int | None]] = [(number, None) for number in range(len(nodes))]
        before = len(self.source.problems)
        numbers: dict[str, int] = {}
        for number, node in enumerate(nodes):
            if numbers.setdefault(node["name"], number) != number:
                message = f"two nodes are called `{node['name']}`"
                self.source.refuse((*path, "nodes", number, "name"), message, "a name for each")
        leaving: dict[str, int] = {}
        entering: dict[str, int] = {}
        for number, edge in enumerate(edges):
            self._check_edge(edge, number, path, numbers, (leaving, entering))
        if len(self.source.problems) > before:
            return unordered
        begins = [name for name in numbers if name not in entering]
        if len(begins) != 1:
            names = ", ".join(f"`{name}`" for name in begins) or "none"
            message = f"{names}: a graph begins with one node, to which no edge leads"
            self.source.refuse((*path, "edges") if edges else (*path, "nodes"), message)
            return unordered
        order = self._walk(begins[0], edges, numbers, leaving)
        if len(order) < len(numbers):
            lost = next(name for name, number in numbers.items() if number not in dict(order))
            message = f"no edges lead from `{begins[0]}` to `{lost}`"
            self.source.refuse((*path, "edges"), message, "one edge from each node to the next")
            return unordered
        return order

    def _check_edge(
        self,
        edge: _Json,
        number: int,
        path: Path,
        known: Mapping[str, int],
        used: tuple[dict[str, int], dict[str, int]],
    ) -> None:
        for end, others, verb in zip(("source", "target"), used, ("leaves", "enters"), strict=True):
            place = (*path, "edges", number, end)
            if edge[end] not in known:
                names = ", ".join(known)
                self.source.refuse(place, f"there is no node `{edge[end]}`", f"nodes here: {names}")
            elif others.setdefault(edge[end], number) != number:
                message = f"a second edge {verb} `{edge[end]}`"
                self.source.refuse(place, message, "one edge from each node to the next")

    @staticmethod
    def _walk(
        begin: str, edges: Sequence[_Json], numbers: Mapping[str, int], leaving: Mapping[str, int]
    ) -> list[tuple[int, int | None]]:
        order: list[tuple[int, int | None]] = [(numbers[begin], None)]
        name = begin
        # Each node once, whatever the edges say.
        while name in leaving and len(order) < len(numbers):
            edge = leaving[name]
            name = edges[edge]["target"]
            order.append((numbers[name], edge))
        return order

    def _step(self, node: _Json, path: Path, here: Path, after: str | None) -> dict[str, Any]:
        group = node["type"] == "COMPOSITE"
        step: dict[str, Any] = {"step": self._group_name(node) if group else node["name"]}
        self.origins |= {here: path, (*here, "step"): (*path, "name")}
        if after is not None:
            step["after"] = after
        if group:
            self._check_group(node, path)
            step |= self._quantified(node["quantifier"], (*path, "quantifier"), here)
            step["group"] = self._list(node, path, (*here, "group"))
            return step
        for name in ("nodes", "edges", "window", "afterMatchStrategy"):
            if node.get(name) is not None:
                self.source.refuse((*path, name), f"an `ATOMIC` node has no `{name}`", at="key")
        selection = self._condition(node.get("condition"), (*path, "condition"))
        for name, value in (("where", selection.where), ("of_type", selection.of_type)):
            if value is not None:
                step[name] = value
                self.origins[(*here, name)] = _origin(node["condition"], (*path, "condition"))
        return step | self._quantified(node["quantifier"], (*path, "quantifier"), here)

    def _condition(self, condition: _Json | None, path: Path) -> Selection:
        return Selection() if condition is None else self.conditions.read(condition, path)

    def _group_name(self, node: _Json) -> str:
        """A graph is called as its last node, and steps and groups must differ."""
        name = str(node["name"])
        if name not in node_names(node):
            return name
        number, made = 1, f"{name}_group"
        while made in self._names:
            number += 1
            made = f"{name}_group_{number}"
        self._names.add(made)
        return made

    def _check_group(self, node: _Json, path: Path) -> None:
        if node.get("condition") is not None:
            self.source.refuse(
                (*path, "condition"), "a graph has no condition, its nodes have", at="key"
            )
        if node.get("window") is not None:
            message = "a window on a nested graph is not supported: Flink ignores it"
            self.source.refuse((*path, "window"), message, "`window` of the outermost graph")
        strategy = node.get("afterMatchStrategy")
        if strategy not in (None, self._outermost) and strategy["type"] != "NO_SKIP":
            message = "a nested graph has no skip strategy of its own"
            help_text = "`null`, `NO_SKIP`, or what the outermost graph says"
            self.source.refuse((*path, "afterMatchStrategy"), message, help_text)

    def _quantified(self, quantifier: _Json, path: Path, here: Path) -> dict[str, Any]:
        times, strategy = quantifier.get("times") or {}, quantifier["consumingStrategy"]
        fields = self._times(quantifier["properties"], times, path)
        if "times" in fields and times.get("windowTime") is not None:
            fields["gap"] = _duration(times["windowTime"])
        if strategy in _LOOP and "times" in fields:
            fields["loop"] = _LOOP[strategy]
        elif strategy in _LOOP:
            message = f"`{strategy}` is about repetitions, and this node does not repeat"
            help_text = "`SKIP_TILL_NEXT`; `type` of the edge says how the node follows another"
            self.source.refuse((*path, "consumingStrategy"), message, help_text)
        for word in ("OPTIONAL", "GREEDY"):
            if word in quantifier["properties"]:
                fields[word.lower()] = True
        until = self._condition(quantifier.get("untilCondition"), (*path, "untilCondition"))
        if until.of_type is not None:
            message = "`SubtypeCondition` in `untilCondition` is not supported"
            self.source.refuse((*path, "untilCondition"), message)
        if until.where is not None:
            fields["until"] = until.where
        for name in fields:
            self.origins[(*here, name)] = (*path, *_QUANTIFIER_ORIGINS[name])
        if "until" in fields:
            origin = _origin(quantifier["untilCondition"], (*path, "untilCondition"))
            self.origins[(*here, "until")] = origin
        if not times:
            self.origins[(*here, "times")] = (*path, "properties")
        return fields

    def _times(self, properties: Sequence[str], times: _Json, path: Path) -> dict[str, Any]:
        if len({"SINGLE", "LOOPING", "TIMES"} & set(properties)) > 1:
            message = f"{' and '.join(f'`{p}`' for p in properties)} do not go together"
            allowed = "one of `SINGLE`, `LOOPING`, `TIMES`"
            self.source.refuse((*path, "properties"), message, allowed)
        elif "LOOPING" in properties:
            if times.get("from") == 0:
                allowed = "a number from 1; `OPTIONAL` for none"
                self.source.refuse((*path, "times", "from"), "`LOOPING` repeats 0 times", allowed)
            return {"times": f"{times.get('from', 1)}+"}
        elif "TIMES" in properties and not times:
            self.source.refuse(path, "`TIMES` needs `times`", "`from` and `to`")
        elif "TIMES" in properties:
            least, most = times["from"], times.get("to") or times["from"]
            return {"times": least if least == most else f"{least}..{most}"}
        elif times and (times["from"], times.get("to") or 1) != (1, 1):
            message = "`times` counts with `TIMES` or `LOOPING` in `properties` alone"
            self.source.refuse((*path, "times"), message, "`TIMES` or `LOOPING`; or `null`")
        return {}


def node_names(graph: _Json) -> Iterator[str]:
    """The names of all nodes inside a graph."""
    for node in graph.get("nodes") or ():
        yield node["name"]
        yield from node_names(node)


def _origin(condition: _Json, path: Path) -> Path:
    return (*path, "expression") if condition["type"] == "AVIATOR" else path


def _duration(time: _Json) -> str:
    return f"{time['size']} {_UNITS.get(time['unit'], time['unit'].lower())}"
