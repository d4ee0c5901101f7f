"""The JSON Schema of a rule document, made from its shape."""

from __future__ import annotations

from typing import Any, Final

from pydantic import BaseModel

from spark_cep.pattern.checks.sql_rule import FIELD, IN_STATEMENT
from spark_cep.pattern.document.shape import RuleShape, SqlRuleShape
from spark_cep.pattern.ververica.format import FormatShape

SCHEMA_ID: Final = "urn:spark-cep:rule"


def rule_schema() -> dict[str, Any]:
    """The JSON Schema of a rule document."""
    schema: dict[str, Any] = RuleShape.model_json_schema()
    foreign = {name: schema["$defs"][name] for name in _names_below(FormatShape)}
    of_sql = SqlRuleShape.model_json_schema()["properties"]
    schema["properties"][FIELD] = of_sql[FIELD]
    schema = cleaned(schema, nulls=False)
    # Programs that make this JSON write its nulls.
    schema["$defs"] |= {name: cleaned(part, nulls=True) for name, part in foreign.items()}
    schema["required"] = ["id"]
    schema["oneOf"] = [{"required": [name]} for name in ("pattern", "ververica", FIELD)]
    others = {"ververica": ("pattern", "within", "after_match"), FIELD: IN_STATEMENT}
    schema["dependentSchemas"] = {
        kind: {"properties": dict.fromkeys(names, False)} for kind, names in others.items()
    }
    schema["dependentRequired"] = {"java_classes": ["ververica"]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": "spark-cep rule",
        **schema,
    }


def _names_below(model: type[BaseModel]) -> list[str]:
    return sorted(below.__name__ for below in model.__subclasses__())


def cleaned(part: Any, *, nulls: bool) -> Any:
    """Return a schema without titles and, unless ``nulls`` may stand for absent keys, without
    these."""
    if isinstance(part, list):
        return [cleaned(item, nulls=nulls) for item in part]
    if not isinstance(part, dict):
        return part
    kept = {
        name: cleaned(value, nulls=nulls)
        for name, value in part.items()
        if not (name == "title" and isinstance(value, str))
        and (nulls or name != "default" or value is not None)
    }
    choices = [choice for choice in kept.get("anyOf", ()) if choice != {"type": "null"}]
    if nulls or not choices:
        return kept
    if len(choices) == 1:
        del kept["anyOf"]
        return {**choices[0], **kept}
    return kept | {"anyOf": choices}
