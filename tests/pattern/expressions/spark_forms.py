"""Every function and operator over columns of every type that it takes, with Spark's text for it.

A row is the types of its columns, the text here, and Spark's where that is another: nothing fails
here, so ``+`` is ``try_add`` there and ``CAST`` is ``TRY_CAST``. A letter stands for a type, or for
several, which are all tried; the first column is ``a_`` and its letter, the second ``b_``, the
third ``c_``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, product
from typing import NamedTuple

SEVERAL = {
    "N": "ilfdmn",
    "W": "il",
    "O": "sbtyx",
    "M": "ty",
    "E": "ilfdmnsbty",
    "P": "ilfdmnsb",
    "V": "sty",
    "R": "rq",
    "C": "rqw",
}
UNITS = (
    "YEAR",
    "QUARTER",
    "MONTH",
    "WEEK",
    "DAY",
    "HOUR",
    "MINUTE",
    "SECOND",
    "MILLISECOND",
    "MICROSECOND",
)
ZONES = "'Europe/Berlin'", "'America/St_Johns'", "'Pacific/Apia'", "'UTC'"
_TRY = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "%": "mod"}
_COMPARISONS = "=", "<>", "<", "<=", ">", ">=", "<=>"
_INTERVALS = "INTERVAL 90 MINUTES", "INTERVAL '-1' DAY", "INTERVAL 1 MONTH", "INTERVAL 11 YEARS"
_OF_MONTHS = _INTERVALS[2:]
_DOUBLES = (
    "EXP",
    "LN",
    "LOG",
    "LOG10",
    "LOG2",
    "SIN",
    "COS",
    "TAN",
    "ASIN",
    "ACOS",
    "ATAN",
    "RADIANS",
    "DEGREES",
    "SQRT",
    "SIGN",
)
_PARTS = ("YEAR", "MONTH", "DAY", "DAYOFWEEK")
_CLOCK = ("HOUR", "MINUTE", "SECOND")
_TARGETS = {
    "STRING": "E",
    "INT": "P",
    "BIGINT": "P",
    "DOUBLE": "P",
    "BOOLEAN": "P",
    "DECIMAL(10, 2)": "P",
    "DECIMAL(38, 18)": "P",
    "TIMESTAMP": "V",
    "DATE": "V",
}


class Form(NamedTuple):
    """A text here, and Spark's."""

    here: str
    spark: str


def _comparisons() -> Iterator[tuple[str, ...]]:
    for sign, name in _TRY.items():
        yield "NN", f"{{}} {sign} {{}}", f"try_{name}({{}}, {{}})"
    for sign in _COMPARISONS:
        yield "NN", f"{{}} {sign} {{}}"
        yield from ((f"{o}{o}", f"{{}} {sign} {{}}") for o in SEVERAL["O"])
        yield from ((pair, f"{{}} {sign} {{}}") for pair in ("ty", "yt"))
    for name in ("COALESCE", "NULLIF", "GREATEST", "LEAST"):
        yield "NN", f"{name}({{}}, {{}})"
        yield from ((f"{o}{o}", f"{name}({{}}, {{}})") for o in SEVERAL["O"])
        yield from ((pair, f"{name}({{}}, {{}})") for pair in ("ty", "yt"))


def _choices() -> Iterator[tuple[str, ...]]:
    for o in ("i", "l", "d", "m", "s", "t", "y"):
        yield f"{o}{o}{o}", "{} IN ({}, {})"
        yield f"{o}{o}{o}", "{} NOT IN ({}, NULL, {})"
        yield f"{o}{o}{o}", "{} BETWEEN {} AND {}"
        yield f"{o}{o}{o}", "CASE {} WHEN {} THEN 1 WHEN {} THEN 2 ELSE 3 END"
        yield f"b{o}{o}", "CASE WHEN {} THEN {} ELSE {} END"
        yield f"b{o}{o}", "IF({}, {}, {})"
        yield f"{o}{o}{o}", "GREATEST({}, {}, {})"
        yield f"{o}{o}", "{} IS DISTINCT FROM {}"
    yield "dmi", "COALESCE({}, {}, {})"
    for o in ("i", "l", "d", "f", "m", "n", "s", "t", "y", "x", "b"):
        yield o, "{} IS NULL"
        yield o, "{} IS NOT NULL"


def _logic_and_signs() -> Iterator[tuple[str, ...]]:
    yield "bb", "{} AND {}"
    yield "bb", "{} OR {}"
    for text in ("NOT {}", "{} IS TRUE", "{} IS NOT TRUE", "{} IS FALSE"):
        yield "b", text
    yield "i", "-{}", "try_subtract(0, {})"
    yield "l", "-{}", "try_subtract(0L, {})"
    for letter in "fdm":
        yield letter, "-{}"
        yield letter, "ABS({})"
    # Spark fails where rounding to 34 digits goes beyond 38.
    narrow = "CAST({} AS DECIMAL(34, 14))"
    yield "n", f"-{narrow}", f"-try_{narrow}"
    yield "n", f"ABS({narrow})", f"abs(try_{narrow})"
    yield "i", "ABS({})", "try_cast(abs(cast({} as bigint)) as int)"
    yield "l", "ABS({})", "try_cast(abs(cast({} as decimal(20))) as bigint)"
    yield "NN", "MOD({}, {})", "try_mod({}, {})"
    for target, letters in _TARGETS.items():
        yield letters, f"CAST({{}} AS {target})", f"try_cast({{}} AS {target})"
    yield "s", "TRY_CAST({} AS INT)"


def _numbers() -> Iterator[tuple[str, ...]]:
    for digits in ("", ", 0", ", 1", ", 2", ", 5"):
        yield "N", f"ROUND({{}}{digits})"
    for name in ("FLOOR", "CEIL", *_DOUBLES):
        yield "N", f"{name}({{}})"
    for name in ("LOG", "POWER", "ATAN2"):
        yield "NN", f"{name}({{}}, {{}})"
    yield "", "PI()"


def _texts() -> Iterator[tuple[str, ...]]:
    for name in ("UPPER", "LOWER", "TRIM", "LTRIM", "RTRIM", "LENGTH", "REVERSE", "CONCAT"):
        yield "s", f"{name}({{}})"
    yield "s", "INITCAP({})"
    yield "x", "LENGTH({})"
    yield "si", "SUBSTRING({}, {})"
    yield "sii", "SUBSTRING({}, {}, {})"
    for name in ("LEFT", "RIGHT"):
        yield "si", f"{name}({{}}, {{}})"
    yield "sss", "CONCAT({}, {}, {})"
    yield "ss", "{} || {}"
    for name in ("STARTSWITH", "ENDSWITH", "CONTAINS", "INSTR", "LOCATE", "POSITION"):
        yield "ss", f"{name}({{}}, {{}})"
    yield "ssi", "LOCATE({}, {}, {})"
    yield "ssw", "CONCAT_WS('-', {}, {}, {})"
    yield "ss", "CONCAT_WS('', {}, {})"
    for old, new in (("a", "xx"), ("", "x"), ("ab", ""), ("é", "e")):
        yield "s", f"REPLACE({{}}, '{old}', '{new}')"
        yield "s", f"TRANSLATE({{}}, '{old}', '{new}')"
    yield "s", "TRANSLATE({}, 'abca', 'x-')"
    for count in (-1, 0, 1, 3):
        yield "s", f"REPEAT({{}}, {count})"
    for name in ("LPAD", "RPAD"):
        for length in (-1, 0, 2, 7):
            yield "s", f"{name}({{}}, {length})"
            yield "s", f"{name}({{}}, {length}, 'xyz')"
            yield "s", f"{name}({{}}, {length}, '')"
    for separator in ("-", "ab", " "):
        yield "s", f"SPLIT({{}}, '{separator}')"
    yield "ssi", "SPLIT_PART({}, {}, nullif({}, 0))"


def _patterns() -> Iterator[tuple[str, ...]]:
    # ``a\_b`` is a pattern that finds a line; ``\\`` in a string is one ``\``.
    for pattern in ("a%", "%b%", "_", "%", "", r"a\\_b%", "%é_", "%A%"):
        yield "s", f"{{}} LIKE '{pattern}'"
        yield "s", f"{{}} NOT LIKE '{pattern}'"
        yield "s", f"{{}} ILIKE '{pattern}'"
    for pattern in ("^[a-z]+$", "[0-9][0-9]", "b|é", "^$", r"\\d+", r"\\s", "(a)(b)?", "x*"):
        yield "s", f"{{}} RLIKE '{pattern}'"
        yield "s", f"REGEXP_COUNT({{}}, '{pattern}')"
        yield "s", f"REGEXP_EXTRACT({{}}, '{pattern}', 0)"
        yield "s", f"REGEXP_REPLACE({{}}, '{pattern}', '#')"
    yield "s", "REGEXP_EXTRACT({}, '(a)(b)?', 1)"
    yield "s", "REGEXP_EXTRACT({}, '(a)(b)?', 2)"
    yield "s", "REGEXP_REPLACE({}, '(a)(b)', '$2-$1')"


def _zones() -> Iterator[tuple[str, ...]]:
    for name in _PARTS:
        yield "M", f"{name}({{}})"
    for name in _CLOCK:
        yield "t", f"{name}({{}})"
    for zone in ZONES:
        for name in (*_PARTS, *_CLOCK):
            yield "t", f"{name}({{}}, {zone})", f"{name}(from_utc_timestamp({{}}, {zone}))"
        yield "t", f"TO_DATE({{}}, {zone})", f"to_date(from_utc_timestamp({{}}, {zone}))"
        for name in ("FROM_UTC_TIMESTAMP", "TO_UTC_TIMESTAMP"):
            yield "t", f"{name}({{}}, {zone})"
        for to in ZONES:
            text = f"CONVERT_TIMEZONE({zone}, {to}, {{}})"
            local = "cast({} as timestamp_ntz)"
            yield "t", text, f"cast(convert_timezone({zone}, {to}, {local}) as timestamp)"


def _times() -> Iterator[tuple[str, ...]]:
    yield "M", "TO_DATE({})"
    yield "s", "TO_DATE({})", "try_cast({} as date)"
    for unit in UNITS:
        yield "M", f"DATE_TRUNC('{unit}', {{}})"
        yield "MM", f"TIMESTAMPDIFF({unit}, {{}}, {{}})"
    for interval in _INTERVALS:
        for sign in "+-":
            text = f"{{}} {sign} {interval}"
            spark = f"try_{_TRY[sign]}({{}}, {interval})"
            yield "t", text, spark
            yield "y", text, spark if interval in _OF_MONTHS else f"cast({spark} as timestamp)"
            for whole in SEVERAL["W"]:
                yield (
                    f"t{whole}",
                    f"{{}} {sign} {interval} * {{}}",
                    (f"try_{_TRY[sign]}({{}}, try_multiply({interval}, {{}}))"),
                )
    yield "MM", "{} - {} > INTERVAL 10 MINUTES", "try_subtract({}, {}) > INTERVAL 10 MINUTES"
    yield "tt", "{} - {}", "try_subtract({}, {})"
    yield "MM", "DATEDIFF({}, {})"
    yield "Mi", "DATE_ADD({}, {})"
    yield "Mi", "DATE_SUB({}, {})"
    # Spark fails far away.
    yield (
        "Mi",
        "ADD_MONTHS({}, {})",
        "ADD_MONTHS({0}, if({1} between -200000 and 200000, {1}, NULL))",
    )
    for name in ("UNIX_SECONDS", "UNIX_MILLIS", "UNIX_MICROS"):
        yield "t", f"{name}({{}})"
    for name in ("TIMESTAMP_SECONDS", "TIMESTAMP_MILLIS", "TIMESTAMP_MICROS"):
        yield "i", f"{name}({{}})"


def _arrays() -> Iterator[tuple[str, ...]]:
    yield "C", "SIZE({})", "array_size({})"
    yield "p", "SIZE({})", "array_size(map_keys({}))"
    yield "ri", "ARRAY_CONTAINS({}, {})"
    yield "qd", "ARRAY_CONTAINS({}, {})"
    yield "ws", "ARRAY_CONTAINS({}, {})"
    yield "ir", "{} = ANY({})", "array_contains({1}, {0})"
    yield "Ci", "{}[{}]", "get({}, {})"
    yield "Ci", "ELEMENT_AT({}, {})", "try_element_at({}, nullif(nullif({}, 0), -2147483648))"
    yield "ps", "{}[{}]", "try_element_at({}, {})"
    yield "ps", "ELEMENT_AT({}, {})", "try_element_at({}, {})"
    yield "ps", "MAP_CONTAINS_KEY({}, {})"
    yield "p", "MAP_KEYS({})"
    yield "p", "MAP_VALUES({})"
    yield "idd", "ARRAY({}, {}, {})[1]"
    yield "iid", "SIZE(ARRAY({}, {}, {}))", "array_size(array({}, {}, {}))"
    for name, sign in product(("EXISTS", "FORALL", "FILTER"), (">", "<>")):
        yield "ri", f"{name}({{}}, v -> v {sign} {{}})"
        yield "qd", f"{name}({{}}, v -> v {sign} {{}})"
    yield "w", "FILTER({}, v -> v LIKE 'a%')"


_ROWS = (
    _comparisons,
    _choices,
    _logic_and_signs,
    _numbers,
    _texts,
    _patterns,
    _zones,
    _times,
    _arrays,
)


def forms() -> Iterator[Form]:
    """Every form, each combination of types once."""
    seen = set()
    for letters, here, *other in chain.from_iterable(rows() for rows in _ROWS):
        spark = other[0] if other else here
        for kinds in product(*(SEVERAL.get(letter, letter) for letter in letters)):
            names = [f"{first}_{kind}" for first, kind in zip("abc", kinds, strict=False)]
            form = Form(here.format(*names), spark.format(*names))
            if form not in seen:
                seen.add(form)
                yield form


def casts_of_text() -> Iterator[Form]:
    """CASTs of one text, the column ``s``."""
    for target, letters in _TARGETS.items():
        if "s" in SEVERAL[letters] and target != "STRING":
            yield Form(f"CAST(s AS {target})", f"try_cast(s AS {target})")
