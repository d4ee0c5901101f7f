"""Rules in SQL against the types of events, and what these write out."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from spark_cep.errors import Problem
from spark_cep.pattern.document.loading import LoadedRule, examine_rules, load_rules
from spark_cep.pattern.sql import load_query, spelled_out
from spark_cep.pattern.sql_types import check_statement
from spark_cep.pattern.type_check import type_check, type_warnings, with_columns_of
from spark_cep.pattern.types import DOUBLE, INT, STRING, TIMESTAMP, RecordType, record_type
from tests.pattern.test_sql_document import document, underlined

TICK = RecordType(
    {
        "symbol": STRING,
        "ts": TIMESTAMP,
        "price": DOUBLE,
        "pattern": INT,
        "Venue": RecordType({"Name": STRING}),
    }
)
RECORD = ("input ticks", "Tick", TICK)
CLAUSE = """SELECT {select} FROM ticks MATCH_RECOGNIZE (
  PARTITION BY {key} ORDER BY {order}
  MEASURES {measure} AS m
  {rows} PER MATCH
  PATTERN (a b)
  DEFINE b AS {condition}
) AS r
"""


def statement(
    select: str = "*",
    key: str = "symbol",
    order: str = "ts",
    measure: str = "b.price",
    rows: str = "ALL ROWS",
    condition: str = "price > a.price",
) -> str:
    """The clause with these parts."""
    return CLAUSE.format(
        select=select, key=key, order=order, measure=measure, rows=rows, condition=condition
    )


def load(text: str) -> LoadedRule:
    """The rule of a statement."""
    (loaded,) = load_rules(document(text), "r.yaml")
    return loaded


def told(problems: Sequence[Problem]) -> list[tuple[str, str]]:
    """Places and messages."""
    return [(underlined(each), each.message) for each in problems]


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        (statement(condition="prise > 1"), "prise", "the event has no column prise"),
        (statement(condition="symbol > 1"), "symbol > 1", "STRING cannot be compared with INT"),
        (statement(condition="price"), "price", "the condition of b is DOUBLE"),
        (statement(key="account"), "account", "there is no column `account`"),
        (statement(key="price"), "price", "the key is a DOUBLE"),
        (statement(key="Venue"), "Venue", "the key is a STRUCT"),
        (statement(order="time"), "time", "there is no column `time`"),
        (statement(order="price"), "price", "rows come in the order of event time"),
        (statement(select="prise"), "prise", "the result has no column `prise`"),
        (statement(measure="a.prise"), "a.prise", "the event has no column prise"),
    ],
)
def test_what_does_not_fit(text: str, place: str, message: str) -> None:
    """It is told with its place in the document, once."""
    (problem,) = check_statement(load(text), TICK, ("ts",))
    assert underlined(problem) == place
    assert problem.message.startswith(message)
    assert problem.rule == "r"
    assert problem.source == "r.yaml"


def test_what_fits() -> None:
    """Nothing is told, in whatever case names are written."""
    text = statement(measure="B.Venue.NAME", condition="PRICE > A.Price")
    assert check_statement(load(text), TICK, ("ts",)) == []
    assert type_check(load(text), [RECORD]) == []


def test_time_of_the_record() -> None:
    """It is no column, so ORDER BY cannot name it."""
    assert told(check_statement(load(statement()), TICK, ())) == [
        ("ts", "rows come in the order of event time, the time of their Kafka record")
    ]
    assert check_statement(load(statement().replace("ORDER BY ts", "")), TICK, ()) == []


def test_what_is_wrong_in_itself_is_told_once() -> None:
    """The types tell the rest."""
    text = statement(measure="COUNT(c.*)", condition="prise > 1")
    (loaded,), problems = examine_rules(document(text), "r.yaml")
    assert told(problems) == [("COUNT(c.*)", "there is no pattern variable c")]
    (problem,) = type_check(loaded, [RECORD])
    assert underlined(problem) == "prise"


def test_one_of_several_record_types() -> None:
    """Without inputs, as of files, columns of any of them are known."""
    other = ("other", "Other", RecordType({"size": INT}))
    text = statement(condition="price > 1 AND size > 1 AND weight > 1")
    (problem,) = type_check(load(text), [RECORD, other])
    assert underlined(problem) == "weight"
    loaded = load(statement())
    assert with_columns_of(loaded, [RECORD, other]) is loaded


SPELLED = [
    (statement(), statement("symbol, ts, m, price, `pattern`, Venue")),
    (statement("r.*"), statement("symbol, ts, m, price, `pattern`, Venue")),
    (statement(rows="ONE ROW"), statement(rows="ONE ROW")),
    (statement("price, M"), statement("price, M")),
    (statement("*, PRICE AS p"), statement("symbol, ts, m, price, `pattern`, Venue, price AS p")),
    (
        statement("TS AS t, *, PRICE AS p"),
        statement("ts AS t, symbol, ts, m, price, `pattern`, Venue, price AS p"),
    ),
    (statement("PRICE AS p, r.TS"), statement("price AS p, ts")),
    (
        statement("m", "SYMBOL", "Ts", "SUM(B.PRICE) + b . Price",
                  condition='"B".venue.name > SYMBOL'),
        statement("m", "symbol", "ts", "SUM(B.price) + b . price",
                  condition='"B".Venue.Name > symbol'),
    ),
    (statement("m", measure="b.Pattern"), statement("m", measure="b.`pattern`")),
    (statement("m", measure='"pattern"'), statement("m", measure='"pattern"')),
    (statement("m * 2 AS n, UPPER(r.SYMBOL) AS s"), statement("m * 2 AS n, UPPER(r.symbol) AS s")),
    (
        statement("m").replace("ticks", "(SELECT * FROM ticks e WHERE e.PRICE > 1 AND Ts <> TS)"),
        statement("m").replace("ticks", "(SELECT * FROM ticks e WHERE e.price > 1 AND ts <> ts)"),
    ),
    (statement("m", measure="'PRICE'"), statement("m", measure="'PRICE'")),
]  # fmt: skip


@pytest.mark.parametrize(("text", "spelled"), SPELLED)
def test_columns_are_written_out(text: str, spelled: str) -> None:
    """`*` as columns, and all columns as the events spell them: then the text means the same
    without the type."""
    assert spelled_out(text, "r.sql", TICK) == spelled
    typed, again = load_query(text, "r.sql", TICK), load_query(spelled, "r.sql")
    assert load_query(spelled, "r.sql", TICK) == typed
    assert again.partition == typed.partition
    assert again.order == typed.order
    assert again.defines == typed.defines
    assert [each.expression for each in again.measures] == [m.expression for m in typed.measures]
    assert [(o.name, str(o.source)) for o in again.outputs] == [
        (o.name, str(o.source)) for o in typed.outputs
    ]


def test_rule_with_columns() -> None:
    """Its canonical text has them, and gives an equal rule; its places stay those of the file."""
    loaded = load(statement())
    found = with_columns_of(loaded, [RECORD])
    assert "SELECT symbol, ts, m, price, `pattern`, Venue FROM ticks" in found.text
    (again,) = load_rules(found.text, "again")
    assert again.rule == found.rule != loaded.rule
    assert again.text == found.text
    assert with_columns_of(again, [RECORD]) is again
    assert type_check(found, [RECORD]) == []
    assert told(check_statement(found, TICK, ())) == told(check_statement(loaded, TICK, ()))


def test_a_rule_that_does_not_fit_stays() -> None:
    """Its problems are told elsewhere."""
    loaded = load(statement(condition="prise > 1"))
    assert with_columns_of(loaded, [RECORD]) is loaded


def test_columns_without_a_type() -> None:
    """A column of ALL ROWS may be one that the clause does not name; of ONE ROW it may not."""
    query = load_query(statement("venue, m"), "r.sql")
    assert [(each.name, each.source) for each in query.outputs] == [("venue", ("venue",)), ("m", 0)]
    _, (problem,) = examine_rules(document(statement("venue, m", rows="ONE ROW")), "r.yaml")
    assert told([problem]) == [("venue", "the result has no column `venue`")]


@pytest.mark.parametrize("select", ["m, m", "*, price", "price AS m, m", "*, *", "price, PRICE"])
def test_names_of_the_result(select: str) -> None:
    """Each is there once."""
    (loaded,), found = examine_rules(document(statement(select)), "r.yaml")
    (problem,) = [*found, *check_statement(loaded, TICK)]
    assert problem.message.lower().startswith("two columns of the result are named `")
    assert underlined(problem) == select.rpartition(", ")[2]


LOGIN = """{"type": "record", "name": "Login", "fields": [
  {"name": "symbol", "type": "string"}, {"name": "ts", "type": "long"},
  {"name": "price", "type": {"type": "enum", "name": "E", "symbols": ["ok", "failed"]}}]}"""


def test_symbols_that_an_enum_does_not_have() -> None:
    """Each is warned of where it stands: of the row under test, of other rows, in aggregates."""
    text = statement(
        measure="COUNT_IF(a.price = 'fails') + IF(LAST(b.PRICE) IN ('ok', 'no'), 1, 0)",
        condition="price = 'ok' OR PREV(price) <> 'failde' OR price = 'OK'",
    )
    record = ("input ticks", "Login", record_type(LOGIN))
    found = type_warnings(load(text), [record])
    assert [(underlined(each), each.message) for each in found] == [
        (f"'{wrong}'", f"'{wrong}' is no symbol of the enum price")
        for wrong in ("fails", "no", "failde", "OK")
    ]
    assert "did you mean `failed`?" in (found[0].allowed or "")
    assert type_check(load(text), [record]) == []
    assert type_warnings(load(statement(condition="prise = 'x'")), [record]) == []
