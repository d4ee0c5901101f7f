"""The tables of functions in the documentation, made from the rows that the evaluator uses.

Their examples read ``EXAMPLE``, whose columns have the types ``EXAMPLE_TYPES``; those of aggregates
run over ``aggregation.EXAMPLE_PRICES``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, datetime, timedelta
from typing import Any

from spark_cep.pattern.expressions.canonical import timestamp_text
from spark_cep.pattern.expressions.functions import ALIASES, FAMILIES
from spark_cep.pattern.expressions.functions.aggregation import AGGREGATES, LOOK_BACK_ALIASES
from spark_cep.pattern.expressions.intervals import interval_text
from spark_cep.pattern.types import DOUBLE, STRING, ArrayType, MapType, RecordType

BEGIN, END = "<!-- functions: begin -->", "<!-- functions: end -->"
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


def shown(value: Any) -> str:
    """A value as it is written in an expression, or nearly so."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case str():
            return f"'{value}'"
        case list():
            return f"[{', '.join(map(shown, value))}]"
        case timedelta():
            return interval_text(value)
        case datetime():
            return f"TIMESTAMP '{timestamp_text(value)}'"
        case date():
            return f"DATE '{value.isoformat()}'"
    return str(value)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _names(name: str, aliases: Mapping[str, str]) -> str:
    others = [f"`{alias}`" for alias, meant in aliases.items() if meant == name]
    shown_name = name.replace("COUNT DISTINCT", "COUNT(DISTINCT …)")
    return f"`{shown_name}`" + (f" ({', '.join(others)})" if others else "")


def _numbers(least: int, most: int | None) -> str:
    if most is None:
        return f"{least} or more"
    return str(least) if least == most else f"{least} to {most}"


def tables() -> Iterator[str]:
    """The lines of all tables, one for each family, the aggregates last."""
    for title, family in FAMILIES.items():
        yield from ("", f"**{title}**", "")
        yield from (
            _row("function", "arguments", "meaning", "example"),
            "| --- | --- | --- | --- |",
        )
        for name, row in family.items():
            example = f"`{row.example}` is `{shown(row.expected)}`"
            yield _row(_names(name, ALIASES), _numbers(*row.arguments), row.doc, example)
    yield from ("", "**Over the events of a step** (here `a`, with prices 2, 4, NULL and 4)", "")
    yield from (_row("function", "meaning", "example"), "| --- | --- | --- |")
    for name, aggregate in AGGREGATES.items():
        value = aggregate.expected
        rounded = f"{value:.4g}" if isinstance(value, float) else shown(value)
        example = f"`{aggregate.example}` is `{rounded}`"
        yield _row(_names(name, LOOK_BACK_ALIASES), aggregate.doc, example)
    yield ""


def section() -> str:
    """Return the generated text with its markers."""
    return "\n".join([BEGIN, *tables(), END])


def with_section(page: str) -> str:
    """The page with its section of functions made again."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + section() + after
