"""The functions an expression may call: the allow-list, one row a function.

``row`` says what a row holds; the rows are in one module for each kind of value. What is not in the
list cannot be called. ``withheld`` names functions that people will look for, with the reason why
they are not here.
"""

from __future__ import annotations

from collections.abc import Mapping

from spark_cep.pattern.expressions.functions.arrays import ARRAYS, LAMBDAS, at_index, element
from spark_cep.pattern.expressions.functions.generic import GENERIC
from spark_cep.pattern.expressions.functions.numeric import NUMERIC
from spark_cep.pattern.expressions.functions.patterns import PATTERNS
from spark_cep.pattern.expressions.functions.row import Function
from spark_cep.pattern.expressions.functions.text import TEXT
from spark_cep.pattern.expressions.functions.times import TIMES

__all__ = [
    "ALIASES",
    "FUNCTIONS",
    "LAMBDAS",
    "SPECIAL_CALLS",
    "Function",
    "at_index",
    "element",
]

FUNCTIONS: Mapping[str, Function] = {**GENERIC, **NUMERIC, **TEXT, **PATTERNS, **TIMES, **ARRAYS}
ALIASES: Mapping[str, str] = {
    "NVL": "COALESCE",
    "IFNULL": "COALESCE",
    "CEILING": "CEIL",
    "SIGNUM": "SIGN",
    "POW": "POWER",
    "SUBSTR": "SUBSTRING",
    "CHAR_LENGTH": "LENGTH",
    "CHARACTER_LENGTH": "LENGTH",
    "LEN": "LENGTH",
    "UCASE": "UPPER",
    "LCASE": "LOWER",
    "POSITION": "LOCATE",
    "REGEXP_LIKE": "RLIKE",
    "REGEXP": "RLIKE",
    "CARDINALITY": "SIZE",
    "DAYOFMONTH": "DAY",
    "DATE_DIFF": "DATEDIFF",
}
SPECIAL_CALLS: Mapping[str, tuple[int, int]] = {"IF": (2, 3), "MOD": (2, 2)}
"""Functions that are another way to write an operator; ``calls`` rewrites them."""
