"""Functions of values of any type; their types and NULLs are the business of ``checking`` and
``evaluation``."""

from __future__ import annotations

from spark_cep.pattern.expressions.functions.row import Function, any_type

GENERIC: dict[str, Function] = {
    "COALESCE": Function((1, None), any_type, cheap=True),
    "NULLIF": Function((2, 2), any_type, cheap=True),
    "GREATEST": Function((2, None), any_type, cheap=True),
    "LEAST": Function((2, None), any_type, cheap=True),
}
