"""Every row of the tables of functions: its place in the list, its text and example in
``docs/expressions.md``."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from spark_cep.pattern.expressions import aggregate, bind, check_types, parse
from spark_cep.pattern.expressions.canonical import timestamp_text
from spark_cep.pattern.expressions.functions import ALIASES, FUNCTIONS, LAMBDAS, SPECIAL_CALLS
from spark_cep.pattern.expressions.functions.aggregation import (
    AGGREGATES,
    LOOK_BACK_ALIASES,
    LOOK_BACK_FUNCTIONS,
)
from spark_cep.pattern.expressions.functions.withheld import INSTEAD, WITHHELD
from spark_cep.pattern.expressions.nodes import Call, Literal
from spark_cep.pattern.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    STRING,
    ArrayType,
    MapType,
    RecordType,
    SqlType,
)

PAGE = Path(__file__).parents[3] / "docs" / "expressions.md"
KINDS: dict[type, tuple[SqlType, ...]] = {
    bool: (BOOLEAN,),
    int: (INT, BIGINT),
    float: (DOUBLE,),
    str: (STRING,),
}
#: The event and the prices of step ``a`` that the page says its examples read.
EXAMPLE: Mapping[str, Any] = {
    "tags": ["new", "vip"],
    "attributes": {"color": "red"},
    "items": [{"name": "pen", "price": 2.5}, {"name": "desk", "price": 150.0}],
}
EXAMPLE_TYPES = RecordType(
    {
        "tags": ArrayType(STRING),
        "attributes": MapType(STRING, STRING),
        "items": ArrayType(RecordType({"name": STRING, "price": DOUBLE})),
    }
)
EXAMPLE_PRICES = (2.0, 4.0, None, 4.0)


class Row(NamedTuple):
    """A row of a table of the page; ``value`` is the text of the example's value."""

    aliases: set[str]
    arguments: str
    doc: str
    example: str
    value: str


def _rows() -> Iterator[tuple[str, Row]]:
    for table in PAGE.read_text("utf-8").split("\n\n"):
        if not table.startswith("| function |"):
            continue
        for line in table.splitlines()[2:]:
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            names, *arguments, doc, example = (cell.replace("\\|", "|") for cell in cells)
            name, *aliases = re.findall(r"`([^`]+)`", names.replace("(DISTINCT …)", " DISTINCT"))
            parts = re.fullmatch("`(.+)` is `(.+)`", example)
            assert parts is not None, line
            yield name, Row(set(aliases), "".join(arguments), doc, *parts.groups())


ROWS = list(_rows())
PAGE_ROWS = dict(ROWS)


def shown(value: Any) -> str:
    """A value as the page shows it."""
    match value:
        case bool():
            return str(value).upper()
        case str():
            return f"'{value}'"
        case list():
            return f"[{', '.join(map(shown, value))}]"
        case datetime():
            return f"TIMESTAMP '{timestamp_text(value)}'"
        case date():
            return f"DATE '{value.isoformat()}'"
    return str(value)


def test_the_page_has_every_function() -> None:
    """Once, in the order of the tables, with the number of its arguments and its other names."""
    assert [name for name, _ in ROWS] == [*FUNCTIONS, *AGGREGATES]
    for name, row in ROWS:
        aliases = ALIASES if name in FUNCTIONS else LOOK_BACK_ALIASES
        assert row.aliases == {alias for alias, of in aliases.items() if of == name}
        assert row.doc
        if name in FUNCTIONS:
            least, most = FUNCTIONS[name].arguments
            wanted = f"{least} or more" if most is None else f"{least} to {most}"
            assert row.arguments == (str(least) if least == most else wanted)


def value_of(text: str, event: RecordType | None = EXAMPLE_TYPES) -> Any:
    """The value of an expression on the example event."""
    e = parse(text)
    paths = {path: number for number, path in enumerate(sorted(e.columns))}
    return bind(e, paths, {}, event)([EXAMPLE[path[0]] for path in paths], ())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_example(name: str) -> None:
    """The example has the value that the documentation shows, with the schema and without it."""
    for event in (EXAMPLE_TYPES, None):
        found = value_of(PAGE_ROWS[name].example, event)
        assert not isinstance(found, Decimal)
        assert shown(found) == PAGE_ROWS[name].value


@pytest.mark.parametrize("name", FUNCTIONS)
def test_example_is_of_the_function(name: str) -> None:
    """The example calls the function, is of its value's type, and has a canonical text."""
    e = parse(PAGE_ROWS[name].example)
    called = e.canonical.startswith(f"{name}(") or f" {name} " in e.canonical
    assert called
    assert parse(e.canonical) == e
    kind = check_types(e, EXAMPLE_TYPES, {})
    expected = KINDS.get(type(value_of(PAGE_ROWS[name].example)))
    assert expected is None or kind in expected


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, row in FUNCTIONS.items()
        if not row.nulls
        and (row.prepare is not None or (row.evaluate is not None and row.arguments[0] == 1))
    ],
)
def test_null_makes_null(name: str) -> None:
    """A function of one argument, or of one and constants, is NULL of NULL."""
    row = FUNCTIONS[name]
    call = parse(PAGE_ROWS[name].example).node
    assert isinstance(call, Call)
    texts = ["null"] * len(call.arguments)
    for place, argument in enumerate(call.arguments):
        if place in row.constants:
            assert isinstance(argument, Literal)
            texts[place] = repr(argument.value)
    assert value_of(f"{name}({', '.join(texts)})") is None


@pytest.mark.parametrize("name", AGGREGATES)
def test_aggregate_example(name: str) -> None:
    """The example of an aggregate has the value that the documentation shows."""
    row = PAGE_ROWS[name]
    e = parse(row.example, steps=frozenset({"a"}))
    assert parse(e.canonical, steps=frozenset({"a"})) == e
    (look_back,) = e.look_backs
    assert look_back.function == name
    found = aggregate(look_back, EXAMPLE_PRICES)
    assert (f"{found:.4g}" if isinstance(found, float) else shown(found)) == row.value
    step = RecordType({"price": DOUBLE})
    kind = check_types(e, None, {"a": step})
    assert kind == (ArrayType(DOUBLE) if name == "COLLECT" else KINDS[type(found)][-1])


def test_names_have_one_meaning() -> None:
    """A name is a function, another name of one, a look-back, or withheld, never two of these."""
    names = [*FUNCTIONS, *ALIASES, *SPECIAL_CALLS, *LOOK_BACK_FUNCTIONS, *LOOK_BACK_ALIASES]
    names += [*WITHHELD, *INSTEAD]
    assert len(names) == len(set(names))
    assert set(ALIASES.values()) <= set(FUNCTIONS)
    assert set(LOOK_BACK_ALIASES.values()) <= set(LOOK_BACK_FUNCTIONS)
    assert set(LAMBDAS) <= set(FUNCTIONS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("EXP(1000)", math.inf),
        ("LN(0)", None),
        ("LOG(1, 5)", math.inf),
        ("LOG(1, 0.5D)", -math.inf),
        ("LOG(1, 1)", math.nan),
        ("POWER(1, CAST('NaN' AS DOUBLE))", math.nan),
        ("LOCATE('', 'abc', 7)", 1),
        ("LOG10(-1)", None),
        ("LOG2(NULL)", None),
        ("POWER(-8, 1.5D)", math.nan),
        ("POWER(0, -1)", math.inf),
        ("POWER(-10, 309)", -math.inf),
        ("ASIN(2)", math.nan),
        ("ATAN2(0, -1)", math.pi),
        ("SPLIT('abc', '')", ["a", "b", "c"]),
        ("SPLIT('', ',')", [""]),
        ("SPLIT_PART('a,b', ',', 0)", None),
        ("SPLIT_PART('a,b', ',', 3)", ""),
        ("SPLIT_PART('a,b', '', 1)", "a,b"),
        ("LOCATE('b', 'abc', 0)", 0),
        ("INSTR('abc', '')", 1),
        ("LPAD('abc', 2)", "ab"),
        ("LPAD('a', 4, 'xy')", "xyxa"),
        ("RPAD('a', 4, '')", "a"),
        ("LPAD('a', -1)", ""),
        ("REPEAT('a', -1)", ""),
        ("REPLACE('abc', '', 'x')", "abc"),
        ("TRANSLATE('aab', 'aab', 'xyz')", "xxz"),
        ("CONCAT_WS(',', NULL, tags, 'x')", "new,vip,x"),
        ("CONCAT_WS(',')", ""),
        ("INITCAP('  o''neil MC-DONALD')", "  O'neil Mc-donald"),
        ("'x' ILIKE 'X'", True),
        ("'Straße' ILIKE 'STRA_E'", True),
        ("'new' = ANY(tags)", True),
        ("'old' = SOME(tags)", False),
        ("'a' NOT RLIKE 'b'", True),
        ("NOT RLIKE('a', 'b')", True),
        ("REGEXP_EXTRACT('abc', '(x)')", ""),
        ("REGEXP_EXTRACT('ab', '(x)?b', 1)", ""),
        ("REGEXP_REPLACE('abc', '(b)(c)', '$2$1')", "acb"),
        ("REGEXP_REPLACE('abc', 'b', '\\\\$1')", "a$1c"),
        ("REGEXP_REPLACE('aé', 'x*', '-')", "-a-é-"),
        ("REGEXP_EXTRACT('é', '(\\\\C)')", "\ufffd"),
        ("REGEXP_COUNT('a\nb', '(?m)$')", 2),
        ("REGEXP_COUNT('xa', 'x*')", 3),
        ("EXISTS(ARRAY(1, NULL), x -> x > 1)", None),
        ("EXISTS(ARRAY(1, NULL), x -> x = 1)", True),
        ("FORALL(ARRAY(1, NULL), x -> x = 1)", None),
        ("FORALL(ARRAY(1, NULL), x -> x > 1)", False),
        ("EXISTS(FILTER(tags, x -> false), x -> true)", False),
        ("FORALL(FILTER(tags, x -> false), x -> false)", True),
        ("EXISTS(items, i -> i.price > SIZE(tags) AND i.name = LOWER('PEN'))", True),
        (
            "EXISTS(items, i -> EXISTS(ARRAY(i.price), p -> p = i.price AND p > LENGTH('abc')))",
            True,
        ),
        ("SIZE(FILTER(items, i -> EXISTS(tags, t -> t = 'vip')))", 2),
    ],
)
def test_value(text: str, expected: Any) -> None:
    """Edges of the domain, empty texts, NULLs among elements, and lambdas inside lambdas."""
    found = value_of(text)
    if isinstance(expected, float) and math.isnan(expected):
        assert math.isnan(found)
    else:
        assert (type(found), found) == (type(expected), expected)
