"""Checks of the annotations of a rule: their names, and the placeholders in their texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from spark_cep.documents.nearest import instead
from spark_cep.documents.places import Path
from spark_cep.pattern.annotations import FIELDS, template
from spark_cep.pattern.checks.findings import Finding
from spark_cep.pattern.checks.names import ALLOWED_NAME, can_name
from spark_cep.pattern.sql.statement import RowsPerMatch
from spark_cep.pattern.tree import Rule

FIELD: Final = "annotations"
_ALLOWED_TEXT: Final = (
    "text with placeholders such as `{key}`; a brace that is meant as such is written twice:"
    " `{{`, `}}`"
)


def check_annotations(rule: Rule) -> Iterator[Finding]:
    """Annotations have names, and placeholders that every match of the rule can fill in."""
    query = rule.query
    if rule.annotations and query is not None and query.rows is not RowsPerMatch.ONE_ROW:
        message = f"`{FIELD}` does not apply to a rule with ALL ROWS PER MATCH"
        yield Finding(message, (FIELD,), "ONE ROW PER MATCH, whose records carry them", at="key")
        return
    outputs = () if query is None else query.outputs
    measures = (*rule.emit.measures, *(output.name for output in outputs))
    for name, text in rule.annotations.items():
        path: Path = (FIELD, name)
        if not can_name(name):
            message = f"`{name}` cannot be the name of an annotation"
            yield Finding(message, path, ALLOWED_NAME, at="key")
        try:
            names = template(text).names
        except ValueError as error:
            yield Finding(f"the annotation `{name}` has {error}", path, _ALLOWED_TEXT)
            continue
        for each in dict.fromkeys(names):
            if each not in FIELDS and each not in measures:
                allowed = instead(each, (*FIELDS, *measures), "fields and measures of a match")
                message = f"the annotation `{name}` names `{each}`, which a match does not have"
                yield Finding(message, path, allowed)
            elif each in FIELDS and each in measures:
                message = f"`{each}` in the annotation `{name}` is both a field and a measure"
                yield Finding(message, path, f"another name for the measure `{each}`")
