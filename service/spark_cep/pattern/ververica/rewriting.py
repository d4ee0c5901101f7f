"""Rule documents with ``ververica`` in place of ``pattern``, as ordinary ones.

The JSON may be part of the document or a text in it. Either way what is wrong is underlined where
it stands, with its path in the JSON; what the checks of ordinary rules find later, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from spark_cep.documents.places import Path, Places
from spark_cep.errors import Problem
from spark_cep.pattern.ververica.conditions import JAVA_CLASSES, ConditionReader
from spark_cep.pattern.ververica.format import EXPLAINER, FIELD, ConditionShape, NodeShape
from spark_cep.pattern.ververica.graph import Steps, node_names
from spark_cep.pattern.ververica.source import GraphSource

_IN_GRAPH: Final = ("pattern", "within", "after_match")
_STEP_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


class Rewritten(NamedTuple):
    """An ordinary document, the places of its parts, and what was wrong with the JSON. ``None``
    stands for the data of what is no rule at all."""

    data: dict[str, Any] | None
    places: Places
    problems: list[Problem]


def rewritten(data: dict[str, Any], places: Places) -> Rewritten:
    """The ordinary form of a document: another document, where it has ``ververica``.

    Where its pattern is wrong the document has steps of the same names, which take every event, so
    that what is wrong elsewhere is found all the same.
    """
    if data.get(FIELD) is not None:
        return _rewritten(data, places)
    if _is_bare(data):
        message = "this is a pattern of Ververica's dynamic CEP without a rule around it"
        allowed = f"a rule with `id`, `key` and, as `{FIELD}: …`, this JSON"
        return Rewritten(None, places, [places.problem(message, (), allowed=allowed)])
    if JAVA_CLASSES in data and FIELD not in data:
        message = f"`{JAVA_CLASSES}` goes with `{FIELD}`"
        return Rewritten(data, places, [places.problem(message, (JAVA_CLASSES,), at="key")])
    return Rewritten(data, places, [])


def _rewritten(data: Mapping[str, Any], places: Places) -> Rewritten:
    rest = {name: value for name, value in data.items() if name not in (FIELD, JAVA_CLASSES)}
    source = GraphSource(data[FIELD], places)
    problems = [
        places.problem(f"`{name}` stands in the JSON of `{FIELD}`", (name,), at="key")
        for name in _IN_GRAPH
        if name in rest
    ]
    classes, wrong = _classes(data.get(JAVA_CLASSES, {}), places)
    fields, origins = ({}, {}) if source.problems else _fields(source, classes)
    problems += wrong + source.problems
    kept = {name: value for name, value in rest.items() if name not in _IN_GRAPH}
    if problems:
        names = dict.fromkeys(_names(source.graph))
        if not names:
            # Of which steps measures speak is not known.
            kept.pop("emit", None)
        steps = [{"step": name, "after": "followed_by"} for name in names or ["any"]]
        fields = {"pattern": [{"step": steps[0]["step"]}, *steps[1:]]}
    return Rewritten({**kept, **fields}, source.places_of(origins), problems)


def rule_text(rule_id: str, version: int, pattern: str, beside: Mapping[str, Any]) -> str:
    """The text of the rule document for a row of a table of rules.

    Args:
        rule_id: The row's ``id``.
        version: The row's ``version``.
        pattern: The row's ``pattern``. A text that is not the bare JSON is the rule's own text,
            and is given back as it is.
        beside: What the JSON lacks, as fields of a rule: ``key``, ``events``, ``emit``,
            ``java_classes`` …
    """
    try:
        data = json.loads(pattern)
    except (ValueError, RecursionError):
        return pattern
    if not isinstance(data, dict) or not _is_bare(data):
        return pattern
    document = {"id": rule_id, "version": version, **beside, FIELD: pattern}
    return json.dumps(document, indent=2, ensure_ascii=False)


def _is_bare(data: Mapping[str, Any]) -> bool:
    return not data.keys() & {"pattern", FIELD} and {"nodes", "edges"} <= data.keys()


def _names(graph: object) -> Iterator[str]:
    """The names of nodes in JSON of any shape that may be names of steps."""
    nodes = graph.get("nodes") if isinstance(graph, Mapping) else None
    for node in nodes if isinstance(nodes, list) else ():
        name = node.get("name") if isinstance(node, Mapping) else None
        inside = list(_names(node))
        if inside:
            yield from inside
        elif isinstance(name, str) and _STEP_NAME.fullmatch(name):
            yield name


def _classes(given: object, places: Places) -> tuple[dict[str, str], list[Problem]]:
    allowed = "for each Java class its SQL condition, `com.example.Big: price > 100`"
    if not isinstance(given, Mapping):
        message = f"`{JAVA_CLASSES}` must be a mapping"
        return {}, [places.problem(message, (JAVA_CLASSES,), allowed=allowed)]
    problems = [
        places.problem(f"the SQL of `{name}` must be text", (JAVA_CLASSES, name), allowed=allowed)
        for name, text in given.items()
        if not isinstance(text, str) or not text.strip()
    ]
    return {name: text for name, text in given.items() if isinstance(text, str)}, problems


def _fields(
    source: GraphSource, classes: Mapping[str, str]
) -> tuple[dict[str, Any], dict[Path, Path]]:
    """The fields of the graph, and where they come from; none where its shape is wrong."""
    graph = source.graph
    try:
        NodeShape.model_validate(graph)
    except ValidationError as error:
        for fault in EXPLAINER.faults(error):
            allowed = fault.allowed or fault.description or fault.limit
            source.refuse(fault.path, fault.message, allowed, at=fault.at)
        _check_conditions(graph, (), ConditionReader(classes, frozenset(), source))
        return {}, {}
    assert isinstance(graph, Mapping)
    names = frozenset(node_names(graph))
    steps = Steps(ConditionReader(classes, names, source), source)
    return steps.rule_fields(graph), steps.origins


def _check_conditions(part: object, path: Path, reader: ConditionReader) -> None:
    """Look at all conditions of the right shape in JSON of another shape."""
    if isinstance(part, list):
        for number, item in enumerate(part):
            _check_conditions(item, (*path, number), reader)
    for name, value in part.items() if isinstance(part, Mapping) else ():
        here = (*path, name)
        if name not in ("condition", "untilCondition"):
            _check_conditions(value, here, reader)
        elif value is not None:
            try:
                ConditionShape.model_validate(value)
            except ValidationError:
                continue
            reader.read(value, here)
