r"""Rule conditions and measures: Spark SQL expressions with look-backs to a pattern's steps.

An expression is parsed once into a vetted tree (``parse``), checked against schemas
(``check_types``), and computed by ``bind``, with ``aggregate`` for look-backs; compiled forms of it
elsewhere give the same answers. Rules come from people who are not trusted: what is not on the list
of operators and functions is refused, and whatever a rule says, an event costs time in proportion
to its size (``regular``, ``lambdas``) and memory too (``growth``).

**Names.** ``price`` and ``a.b.c`` are columns of the event. A dotted name whose first part is a
step refers to the step's events: ``LAST(a.price)``, ``FIRST(a.price, 1)`` (the one after the
first), the aggregates of ``aggregation``, ``COUNT(a.*)``; a bare ``a.price`` is ``LAST(a.price)``.
In a measure there is no event under test: ``price`` is the last event's, and ``COUNT(*)``,
``FIRST(price)`` … run over all events of the match, as step ``ALL_STEPS``. A lambda's parameter
hides columns and steps. Names are case-sensitive, as Avro's are; keywords and functions are not. A
name that is a keyword is written in backticks.

**Meaning**: Spark's outside ANSI mode, with the session's time zone at UTC:

- NULL is SQL's third truth value. What cannot be computed is NULL, never an error: division by
  zero, arithmetic beyond INT, BIGINT or 38 decimal digits, times beyond the years 1 to 9999, a CAST
  that does not fit, an index or key that is not there.
- Whole numbers are INT or BIGINT; ``/`` of whole numbers is DOUBLE; ``1.5`` is DECIMAL, ``1e3`` and
  ``1.5D`` are DOUBLE. FLOAT columns are read as DOUBLE. Decimal results have Spark's precision and
  scale. NaN equals NaN and is greater than every other number. FLOOR and CEIL of a DOUBLE beyond
  BIGINT give the last BIGINT. ``EXP`` and the like have the last digit of the C library.
- Text is compared by its UTF-8 bytes. Text and numbers are never compared, added or joined without
  a CAST. TRIM removes spaces only. ``'it''s'`` is one string.
- Text becomes a DATE as ``yyyy-[M]M-[d]d``; a TIMESTAMP also with ``HH:mm``, or with
  ``HH:mm:ss[.fraction]`` and ``Z`` or ``±HH:mm``, else in UTC; other forms that Spark would read
  are NULL.
- Intervals: see ``intervals``. A DATE plus days or smaller units is a TIMESTAMP.
- In LIKE ``\`` is the escape. Regular expressions are RE2's; SPLIT takes plain text.

**Left out**: what gives another answer each time or reaches outside the event
(``functions.withheld``), CAST of numbers to TIMESTAMP, ROUND to negative digits, DIV, comparison of
arrays, maps and records.

**Known limits.** UPPER and LOWER follow Python's Unicode tables. Without schemas, ``bind`` takes
whole numbers as BIGINT and a decimal's size from its value; pass the schemas for exact types.
"""

from spark_cep.pattern.expressions.checking.types import check_types
from spark_cep.pattern.expressions.evaluation.evaluate import bind
from spark_cep.pattern.expressions.evaluation.evaluators import Evaluator
from spark_cep.pattern.expressions.functions.aggregation import aggregate
from spark_cep.pattern.expressions.nodes import ALL_STEPS, ColumnPath, Expression, LookBack
from spark_cep.pattern.expressions.problems import ExpressionError, TextProblem
from spark_cep.pattern.expressions.reading.parsing import parse, parse_of_row, parse_of_rows
from spark_cep.pattern.expressions.reading.reader import MAX_DEPTH, MAX_TREE
from spark_cep.pattern.expressions.reading.syntax import MAX_TEXT
from spark_cep.pattern.expressions.structure import And, Leaf, Or, boolean_structure

__all__ = [
    "ALL_STEPS",
    "MAX_DEPTH",
    "MAX_TEXT",
    "MAX_TREE",
    "And",
    "ColumnPath",
    "Evaluator",
    "Expression",
    "ExpressionError",
    "Leaf",
    "LookBack",
    "Or",
    "TextProblem",
    "aggregate",
    "bind",
    "boolean_structure",
    "check_types",
    "parse",
    "parse_of_row",
    "parse_of_rows",
]
