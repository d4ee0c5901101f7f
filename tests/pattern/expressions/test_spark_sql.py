"""The text that Spark gets. That it computes the same is in ``test_spark_equality``."""

from __future__ import annotations

import pytest

from spark_cep.pattern.expressions import ExpressionError, parse
from tests.pattern.expressions.samples import EVENT
from tests.pattern.expressions.spark_sql import to_spark_sql


def sql(text: str, *, typed: bool = True) -> str:
    """Spark's text, columns written as ``<path>``."""
    e = parse(text, steps=frozenset({"a"}))
    return to_spark_sql(e, lambda path: f"<{'.'.join(path)}>", EVENT if typed else None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i + 1 > rec.x", "(try_add(<i>, (1)) > <rec.x>)"),
        ("f", "CAST(<f> AS DOUBLE)"),
        ("(i % 2) / 3", "try_divide(try_mod(<i>, (2)), (3))"),
        ("-i", "try_subtract(0, <i>)"),
        ("-d", "(- <d>)"),
        ("abs(l)", "try_cast(abs(CAST(<l> AS DECIMAL(20, 0))) AS BIGINT)"),
        ("arr[i]", "get(<arr>, <i>)"),
        ("mp['k']", "try_element_at(<mp>, 'k')"),
        ("element_at(arr, i)", "try_element_at(<arr>, nullif(nullif(<i>, 0), (-2147483648)))"),
        ("size(mp)", "array_size(map_keys(<mp>))"),
        ("s = 'it''s'", "(<s> = CAST(X'69742773' AS STRING))"),
        ("s = '${env:HOME}'", "(<s> = CAST(X'247B656E763A484F4D457D' AS STRING))"),
        ("ts > timestamp '2024-01-01'", "(<ts> > TIMESTAMP_LTZ'2024-01-01 00:00:00Z')"),
        (
            "l = -5L and d < 1.5D and m > 2.50",
            "((<l> = (-5L)) AND (<d> < (1.5D)) AND (<m> > (2.50BD)))",
        ),
        ("cast(i as decimal(5, 2))", "try_cast(<i> AS DECIMAL(5, 2))"),
        ("case when null then i end", "(CASE WHEN CAST(NULL AS BOOLEAN) THEN <i> ELSE NULL END)"),
        ("case i when 1 then s end", "(CASE <i> WHEN (1) THEN <s> ELSE NULL END)"),
        ("lower(upper(s))", "lower(concat(upper(<s>), ''))"),
        ("upper(null)", "CAST(NULL AS STRING)"),
        ("s not in ('a') or s is not null", "((NOT (<s> IN ('a'))) OR (NOT (<s> IS NULL)))"),
    ],
)
def test_text(text: str, expected: str) -> None:
    """Every operation that could raise is written so that it cannot."""
    assert sql(text) == expected


def test_missing_column_is_null() -> None:
    """A column that this record type does not have makes what needs it NULL."""
    assert sql("abs(gone) > 1") == "(NULL > (1))"
    assert sql("size(gone) = 1") == "(CAST(NULL AS INT) = (1))"


@pytest.mark.parametrize(
    "text", ["abs(x)", "-x", "size(x)", "x[y]", "element_at(x, y)", "cast(x as date)"]
)
def test_some_texts_need_the_schema(text: str) -> None:
    """Where the text depends on a type that is not known, that is said."""
    with pytest.raises(ExpressionError, match="needs the event's schema"):
        sql(text, typed=False)


def test_look_backs_are_not_for_spark() -> None:
    """An expression with look-backs is refused."""
    with pytest.raises(ExpressionError, match="look-backs"):
        sql("i > a.i")
