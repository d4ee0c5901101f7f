"""Conditions of nodes as ``where`` and ``of_type`` of steps.

A condition of Ververica is true or false, never NULL: what fails is false. So under
``RichNotCondition`` what SQL leaves NULL is negated to true.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from spark_cep.documents.places import Path
from spark_cep.pattern.expressions import ExpressionError, parse
from spark_cep.pattern.expressions.canonical import expression
from spark_cep.pattern.expressions.nodes import Literal
from spark_cep.pattern.types import STRING
from spark_cep.pattern.ververica.aviator import sql_condition
from spark_cep.pattern.ververica.source import GraphSource

JAVA_CLASSES: Final = "java_classes"
"""The field of a rule that has the SQL of Java classes."""

_CONDITIONS = "flink.cep.pattern.conditions."
_PLACEHOLDER = re.compile(r"\$(\d+)")
_FIELDS = {
    "AVIATOR": {"expression"},
    "CLASS": {"className", "args", "nestedConditions", "subClassName"},
    "CUSTOM_ARGS": {"className", "args"},
}


@dataclass(frozen=True, slots=True)
class Selection:
    """The events that a node takes: a SQL condition and a record type; ``None``: all."""

    where: str | None = None
    of_type: str | None = None


_ALL: Final = Selection()


@dataclass(frozen=True, slots=True)
class ConditionReader:
    """Reads conditions.

    Args:
        classes: The SQL of Java classes by their full names.
        steps: The names of the pattern's steps.
        source: The JSON, which notes what is wrong.
    """

    classes: Mapping[str, str]
    steps: frozenset[str]
    source: GraphSource

    def read(self, condition: Mapping[str, Any], path: Path) -> Selection:
        """Return the selection of a valid condition; a refused one selects all events."""
        kind = condition["type"]
        if kind == "GROOVY":
            self.source.refuse(
                (*path, "type"),
                "Groovy is a programming language, and rules run no programs",
                "`AVIATOR`; or `CLASS` with SQL for its class in `java_classes`",
            )
            return _ALL
        for name, value in condition.items():
            if value is not None and name not in (_FIELDS[kind] | {"type"}):
                self.source.refuse((*path, name), f"`{kind}` has no `{name}`", at="key")
        needed = "expression" if kind == "AVIATOR" else "className"
        if condition.get(needed) is None:
            self.source.refuse(path, f"`{kind}` needs `{needed}`")
            return _ALL
        if kind == "AVIATOR":
            return self._aviator(condition["expression"], (*path, "expression"))
        return self._java_class(condition, path)

    def _aviator(self, text: str, path: Path) -> Selection:
        try:
            return Selection(sql_condition(text.strip(), self.steps))
        except ExpressionError as error:
            for problem in error.problems:
                self.source.refuse(path, problem.message, problem.allowed, problem.span)
            return _ALL

    def _java_class(self, condition: Mapping[str, Any], path: Path) -> Selection:
        name = condition["className"]
        # The package may stand in another, where a program carries its own Flink.
        short = name.rpartition(_CONDITIONS)[2] if name not in self.classes else ""
        nested, subtype = condition.get("nestedConditions"), condition.get("subClassName")
        if short in ("RichAndCondition", "RichOrCondition", "RichNotCondition"):
            if not nested or (short == "RichNotCondition" and len(nested) != 1):
                count = "one condition" if short == "RichNotCondition" else "conditions"
                self.source.refuse(path, f"`{short}` needs {count} in `nestedConditions`")
                return _ALL
            return self._composite(short, nested, (*path, "nestedConditions"))
        if short in ("SubtypeCondition", "RichSubtypeCondition"):
            if subtype is None:
                self.source.refuse(path, f"`{short}` needs `subClassName`")
                return _ALL
            return Selection(of_type=re.split(r"[.$]", subtype)[-1])
        for field, value in (("nestedConditions", nested), ("subClassName", subtype)):
            if value is not None:
                self.source.refuse((*path, field), f"`{name}` with `{field}` is not supported")
        return self._configured(name, condition.get("args"), path)

    def _composite(self, name: str, nested: list[Mapping[str, Any]], path: Path) -> Selection:
        selections = [
            self.read(condition, (*path, number)) for number, condition in enumerate(nested)
        ]
        types = {part.of_type: number for number, part in enumerate(selections) if part.of_type}
        if name != "RichAndCondition":
            for number in types.values():
                message = f"`SubtypeCondition` in `{name}` is not supported"
                self.source.refuse((*path, number), message, "it, or it in a `RichAndCondition`")
        elif len(types) > 1:
            message = f"an event has one type, here are {', '.join(f'`{t}`' for t in types)}"
            self.source.refuse(path, message)
        texts = [part.where for part in selections]
        of_type = next(iter(types), None)
        if name == "RichAndCondition":
            given = [text for text in texts if text is not None]
            return Selection(_joined("AND", given), of_type)
        if None in texts:
            # Refused already, or of a type alone, which is refused here.
            return _ALL
        given = [text for text in texts if text is not None]
        return Selection(
            f"({given[0]}) IS NOT TRUE" if name == "RichNotCondition" else _joined("OR", given)
        )

    def _configured(self, name: str, args: str | list[str] | None, path: Path) -> Selection:
        text = self.classes.get(name)
        if text is None:
            self.source.refuse(
                (*path, "className"),
                f"what `{name}` does is not known",
                f"its condition in SQL, as `{name}: …` in `{JAVA_CLASSES}`",
            )
            return _ALL
        given = [args] if isinstance(args, str) else args or []
        used = {int(number) for number in _PLACEHOLDER.findall(text)}
        wrong = used ^ set(range(1, len(given) + 1))
        if wrong:
            self.source.refuse(
                (*path, "args"),
                f"the SQL of `{name}` has {_listed(used)}, and `args` has {len(given)} texts",
                "`$1`, `$2` … in the SQL for each text of `args`",
            )
            return _ALL
        written = [expression(Literal(text, STRING)).canonical for text in given]
        sql = _PLACEHOLDER.sub(lambda match: written[int(match[1]) - 1], text).strip()
        try:
            parse(sql, steps=self.steps)
        except ExpressionError as error:
            for problem in error.problems:
                message = f"the SQL of `{name}` in `{JAVA_CLASSES}`: {problem.message}"
                self.source.refuse((*path, "className"), message, problem.allowed)
            return _ALL
        return Selection(sql)


def _listed(numbers: set[int]) -> str:
    return ", ".join(f"`${number}`" for number in sorted(numbers)) or "no `$1`"


def _joined(operator: str, texts: list[str]) -> str | None:
    if not texts[1:]:
        return texts[0] if texts else None
    return f" {operator} ".join(f"({text})" for text in texts)
