"""Functions of values of any type; their types and NULLs are the business of ``checking`` and
``evaluation``."""

from __future__ import annotations

from spark_cep.pattern.expressions.functions.row import Function, any_type

GENERIC: dict[str, Function] = {
    "COALESCE": Function(
        arguments=(1, None),
        result=any_type,
        cheap=True,
        doc="The first that is not NULL.",
        example="COALESCE(NULL, 1, 2)",
        expected=1,
    ),
    "NULLIF": Function(
        arguments=(2, 2),
        result=any_type,
        cheap=True,
        doc="NULL when both are equal, else the first.",
        example="NULLIF(1, 2)",
        expected=1,
    ),
    "GREATEST": Function(
        arguments=(2, None),
        result=any_type,
        cheap=True,
        doc="The greatest that is not NULL.",
        example="GREATEST(1, 3, 2)",
        expected=3,
    ),
    "LEAST": Function(
        arguments=(2, None),
        result=any_type,
        cheap=True,
        doc="The least that is not NULL.",
        example="LEAST('b', 'a')",
        expected="a",
    ),
}
