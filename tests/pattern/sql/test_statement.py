"""Statements: what is read, and what is refused, with its place."""

from __future__ import annotations

import time

import pytest

from spark_cep.errors import RuleSetError
from spark_cep.pattern.sql import Query, load_query
from spark_cep.pattern.sql.statement import RowsPerMatch, SkipTo
from spark_cep.pattern.sql.syntax import MAX_NESTING, MAX_TEXT
from spark_cep.pattern.types import BIGINT, STRING, ArrayType, RecordType

EVENT = RecordType(
    {
        "k": STRING,
        "ts": BIGINT,
        "s": STRING,
        "v": BIGINT,
        "pattern": BIGINT,
        "tags": ArrayType(BIGINT),
        "place": RecordType({"City": STRING}),
    }
)


def query(clause: str, select: str = "*", event: RecordType | None = EVENT) -> Query:
    """The query of a clause."""
    return load_query(f"SELECT {select} FROM t MATCH_RECOGNIZE ({clause}) AS m", "r.sql", event)


def problems(clause: str, select: str = "*") -> list[tuple[str, str]]:
    """Each problem: what is underlined, and the message."""
    with pytest.raises(RuleSetError) as caught:
        query(clause, select)
    return [
        (p.excerpt[p.span.column - 1 :][: p.span.length], p.message)
        for p in caught.value.problems
        if p.excerpt is not None and p.span is not None
    ]


def test_all_parts() -> None:
    """Every part of the clause arrives, with comments, quoted names and any case of keywords."""
    text = """
        -- V-shape
        Select k, bottom as low From "ticks-2" Match_Recognize (
          Partition By k, place.city
          Order By ts Asc Nulls First
          Measures Final Last(Down.v) as bottom /* the lowest */, "first" . v as x
          All Rows Per Match Omit Empty Matches
          After Match Skip To First `u`
          Pattern ("first" Down+? Up{2,3})
          Within Interval '5' Minute
          Subset `u` = (Down, Up)
          Define down As v < Prev(v), Up As v > /* before */ Prev(v) And s <> 'it''s -- no comment'
        ) As m;
    """
    read = load_query(text, "r.sql", EVENT)
    assert read.input == "ticks-2"
    assert read.partition == (("k",), ("place", "City"))
    assert [(each.path, each.descending, each.nulls_first) for each in read.order] == [
        (("ts",), False, True)
    ]
    assert [(each.name, each.expression.canonical) for each in read.measures] == [
        ("bottom", "FINAL LAST(DOWN.v)"),
        ("x", "RUNNING LAST(first.v)"),
    ]
    assert read.rows is RowsPerMatch.OMIT_EMPTY
    assert (read.skip, read.target) == (SkipTo.FIRST, ("DOWN", "UP"))
    assert str(read.pattern) == '"first" DOWN+? UP{2,3}'
    assert read.within_ms == 300_000
    assert {name: each.canonical for name, each in read.defines.items()} == {
        "DOWN": "v < PREV(RUNNING LAST(v), 1)",
        "UP": "v > PREV(RUNNING LAST(v), 1) AND s <> 'it\\'s -- no comment'",
    }
    assert [(each.name, each.source) for each in read.outputs] == [("k", ("k",)), ("low", 0)]


def test_left_out() -> None:
    """What is left out has the standard's defaults."""
    read = query("PARTITION BY k PATTERN (A) DEFINE A AS TRUE")
    assert (read.rows, read.skip) == (RowsPerMatch.ONE_ROW, SkipTo.PAST_LAST_ROW)
    assert (read.order, read.measures, read.within_ms) == ((), (), None)


@pytest.mark.parametrize(
    "pattern",
    [
        "A B+? C*",
        "A | B | C D",
        "(A | B){2,} {- C {- D -} -}",
        "PERMUTE(A, B C, D?) | ()",
        "^ A{3}?? B{,2} $".replace("??", "?"),
        "((A B)*)+",
    ],
)
def test_pattern_text(pattern: str) -> None:
    """A pattern's text is the pattern again."""
    read = query(f"PARTITION BY k PATTERN ({pattern}) DEFINE A AS TRUE")
    again = query(f"PARTITION BY k PATTERN ({read.pattern}) DEFINE A AS TRUE")
    assert again.pattern == read.pattern


def test_permute_of_one() -> None:
    """PERMUTE with one part is a variable of that name and a group, whose quantifier it is."""
    read = query("PARTITION BY k PATTERN (PERMUTE(A)+) DEFINE A AS TRUE")
    assert str(read.pattern) == "PERMUTE A+"


def test_conditions_on_the_row_alone() -> None:
    """What reads the row under test, by whatever name, is read as a column of the event."""
    read = query(
        "PARTITION BY k PATTERN (A B) SUBSET U = (A, B) DEFINE "
        "A AS v > 1 AND A.s = 'a' AND LAST(U.v) = PREV(v, 0) AND CLASSIFIER(U) = 'A', "
        "B AS B.v > A.v AND CLASSIFIER(A) = 'A' AND B.v > FIRST(B.v) AND v > PREV(B.v)"
    )
    of_row, of_match = read.defines["A"], read.defines["B"]
    assert of_row.canonical == "v > 1 AND s = 'a' AND v = v AND 'A' = 'A'"
    assert of_row.is_event_only
    assert of_match.canonical == (
        "v > RUNNING LAST(A.v) AND RUNNING LAST(CLASSIFIER(A)) = 'A' AND v > RUNNING FIRST(B.v) "
        "AND v > PREV(RUNNING LAST(v), 1)"
    )
    assert not of_match.is_event_only
    assert len(of_match.row_values) == 4


def test_distinct_from() -> None:
    """IS DISTINCT FROM is part of an expression, where FROM elsewhere ends one."""
    read = query(
        "PARTITION BY k MEASURES A.v is not\n distinct from 1 AS m PATTERN (A) "
        "DEFINE A AS (v IS DISTINCT FROM 1) AND s IS NOT DISTINCT FROM PREV(s)"
    )
    assert [each.expression.canonical for each in read.measures] == ["RUNNING LAST(A.v) <=> 1"]
    assert read.defines["A"].canonical == "NOT v <=> 1 AND s <=> PREV(RUNNING LAST(s), 1)"


def test_lambdas() -> None:
    """A lambda's parameter hides columns; its body is read in the same row."""
    read = query(
        "PARTITION BY k MEASURES LAST(EXISTS(A.tags, v -> v > 1)) AS m, "
        "EXISTS(tags, x -> x > A.v) AS n PATTERN (A) DEFINE A AS TRUE"
    )
    assert [each.expression.canonical for each in read.measures] == [
        "EXISTS(RUNNING LAST(A.tags), v -> v > 1)",
        "EXISTS(RUNNING LAST(tags), x -> x > RUNNING LAST(A.v))",
    ]


def test_keywords_as_names() -> None:
    """Keywords are names where none can stand, and where they are qualified or quoted."""
    read = query(
        "PARTITION BY k MEASURES A.pattern AS one, `pattern` + LAST(pattern) AS all, "
        "v AS define PATTERN (A match) DEFINE match AS tags[0] > 1"
    )
    assert [each.name for each in read.measures] == ["one", "all", "define"]
    assert read.variables == ("A", "MATCH")


@pytest.mark.parametrize(
    ("clause", "place", "message"),
    [
        ("PARTITION BY k PATTERN (A++ B) DEFINE A AS TRUE", "+", "`+` is not expected here"),
        ("PARTITION BY k PATTERN (A || B) DEFINE A AS TRUE", "|", "`|` is not expected here"),
        ("PARTITION BY k PATTERN (A B)", ")", "DEFINE is missing"),
        ("PARTITION BY k PATTERN (PERMUTE()) DEFINE A AS TRUE", "PERMUTE()", "PERMUTE has no"),
        (
            "ORDER BY ts PARTITION BY k PATTERN (A) DEFINE A AS TRUE",
            "PARTITION BY",
            "PARTITION BY must stand before ORDER BY",
        ),
        (
            "PARTITION BY k PATTERN (A) DEFINE A AS TRUE WITHIN INTERVAL '1' DAY",
            "WITHIN",
            "WITHIN must stand before DEFINE",
        ),
        (
            "PARTITION BY k PATTERN (A) DEFINE A AS TRUE SUBSET U = (A)",
            "SUBSET",
            "SUBSET must stand before DEFINE",
        ),
        (
            "PARTITION BY k PATTERN (A) WITHIN 10 MINUTES DEFINE A AS TRUE",
            "10 MINUTES",
            "WITHIN takes an interval of fixed length",
        ),
        (
            "PARTITION BY k PATTERN (A) DEFINE A AS COUNT(A) > 1",
            "A",
            "A is a pattern variable, not a column: COUNT(A.*) counts its rows",
        ),
        (
            "PARTITION BY k PATTERN (place) DEFINE place AS place.City = 'x'",
            "place.City",
            "place.City: place is the pattern variable here; write PLACE.place.City",
        ),
        (
            "PARTITION BY k PATTERN (A) DEFINE A AS v > CURRENT_TIMESTAMP",
            "CURRENT_TIMESTAMP",
            "the event has no column `CURRENT_TIMESTAMP`; the function CURRENT_TIMESTAMP is not",
        ),
        (
            "PARTITION BY k MEASURES v PATTERN (A) DEFINE A AS TRUE",
            "PATTERN",
            "the measure before PATTERN has",
        ),
        ("PARTITION BY k PATTERN (A{3,2}) DEFINE A AS TRUE", "{3,2}", "the bounds are reversed"),
        ("PARTITION BY k PATTERN (A{0}) DEFINE A AS TRUE", "{0}", "the upper bound is 0"),
        ("PARTITION BY k PATTERN (A{,0}) DEFINE A AS TRUE", "{,0}", "the upper bound is 0"),
        ("PARTITION BY k PATTERN (A) DEFINE A AS s = 'a", "'a) AS m", "what is opened with '"),
        ("PARTITION BY k SEEK PATTERN (A) DEFINE A AS TRUE", "SEEK", "SEEK is for row patterns"),
        ("PARTITION BY k PATTERN (A) DEFINE B AS TRUE", "B", "`B` is not in the pattern"),
        ("PARTITION BY k PATTERN (A) DEFINE A AS TRUE, a AS TRUE", "a", "`a` is defined twice"),
        ("PARTITION BY k PATTERN (A) SUBSET A = (A) DEFINE A AS TRUE", "A", "`A` is a variable"),
        ("PARTITION BY k PATTERN (A) SUBSET U = (B) DEFINE A AS TRUE", "B", "`B` is not in the"),
        (
            "PARTITION BY k PATTERN (A) SUBSET U = (A), U = (A) DEFINE A AS TRUE",
            "U",
            "SUBSET `U` is there twice",
        ),
        (
            "PARTITION BY k PATTERN (A) SUBSET U = (A) DEFINE U AS TRUE",
            "U",
            "`U` is a SUBSET, which has no condition of its own",
        ),
        (
            "PARTITION BY k AFTER MATCH SKIP TO X PATTERN (A) DEFINE A AS TRUE",
            "X",
            "`X` is not in the pattern",
        ),
        (
            "ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (A {- B -}) DEFINE A AS TRUE",
            "{- B -}",
            "{- … -} cannot be combined with WITH UNMATCHED ROWS",
        ),
        ("PARTITION BY k PATTERN (A{99999}) DEFINE A AS TRUE", "A{99999}", "the pattern makes"),
        (
            "PARTITION BY k PATTERN (PERMUTE(A,B,C,D,E,F,G,H,I,J,K,L)) DEFINE A AS TRUE",
            "PERMUTE(A,B,C,D,E,F,G,H,I,J,K,L)",
            "the pattern makes",
        ),
        ("PARTITION BY k PATTERN (A) DEFINE A AS v", "v", "the condition of A is BIGINT"),
        ("PARTITION BY k PATTERN (A) DEFINE A AS NULL", "NULL", "the condition of A is NULL"),
        ("PARTITION BY k PATTERN (A) DEFINE A AS v = 'x'", "v = 'x'", "BIGINT cannot be compared"),
        ("PARTITION BY k PATTERN (A) DEFINE A AS w > 1", "w", "the event has no column w"),
        ("PARTITION BY k PATTERN (A) DEFINE A AS B.v > 1", "B.v", "B.v: B is neither a pattern"),
        (
            "PARTITION BY k PATTERN (A) DEFINE A AS FINAL LAST(v) > 1",
            "FINAL LAST(v)",
            "FINAL is for measures",
        ),
        ("PARTITION BY w PATTERN (A) DEFINE A AS TRUE", "w", "there is no column `w`"),
        ("PARTITION BY v + 1 PATTERN (A) DEFINE A AS TRUE", "v + 1", "PARTITION BY takes columns"),
        ("ORDER BY ts PATTERN (A) DEFINE A AS TRUE", "A", "the result has no columns"),
        (
            "PARTITION BY k MEASURES v AS a, v AS K PATTERN (A) DEFINE A AS TRUE",
            "K",
            "two columns of the result are named `K`",
        ),
        (
            "PARTITION BY k PATTERN (A) WITHIN INTERVAL '1' MONTH DEFINE A AS TRUE",
            "INTERVAL '1' MONTH",
            "WITHIN takes an interval of fixed length",
        ),
        (
            "PARTITION BY k PATTERN (A) WITHIN INTERVAL '0' SECOND DEFINE A AS TRUE",
            "INTERVAL '0' SECOND",
            "WITHIN takes at least a millisecond",
        ),
        (
            "PARTITION BY k PATTERN (A) WITHIN INTERVAL DEFINE A AS TRUE",
            "INTERVAL",
            "INTERVAL needs a number and a unit",
        ),
        ("PARTITION BY FOO(k) PATTERN (A) DEFINE A AS TRUE", "FOO(k)", "the function FOO"),
        (
            "PARTITION BY k PATTERN (A) DEFINE A AS EXTRACT(HOUR FROM ts) = 1",
            "FROM",
            "FROM stands behind IS DISTINCT alone",
        ),
        (
            "PARTITION BY k PATTERN (A) DEFINE A AS v IN (SELECT v FROM t)",
            "SELECT",
            "a sub-query is not allowed here",
        ),
        (
            "PARTITION BY k PATTERN (A) DEFINE A AS PREV(FINAL LAST(v)) > 1",
            "FINAL LAST(v)",
            "FINAL is for measures",
        ),
    ],
)
def test_refused(clause: str, place: str, message: str) -> None:
    """One mistake, one problem, which underlines it."""
    found = problems(clause)
    assert [each[0] for each in found] == [place]
    assert found[0][1].startswith(message)


@pytest.mark.parametrize(
    ("source", "behind", "place", "message"),
    [
        ("t", "WHERE m > 1", "WHERE", "`WHERE` cannot follow the clause"),
        ("t", "where", "where", "`where` cannot follow the clause"),
        ("t", "AS r WHERE m > 1", "WHERE", "`WHERE` cannot follow the clause"),
        ("t", "GROUP BY k", "GROUP", "`GROUP` cannot follow the clause"),
        ("t", "r ORDER BY m", "ORDER", "`ORDER` cannot follow the clause"),
        ("t", "LIMIT 5;", "LIMIT", "`LIMIT` cannot follow the clause"),
        ("t", "HAVING m > 'x", "HAVING", "`HAVING` cannot follow the clause"),
        ("t", "UNION ALL SELECT * FROM u", "UNION", "`UNION` cannot follow the clause"),
        ("t", ", u", ",", "`,` cannot follow the clause"),
        ("t", "; SELECT * FROM u", "SELECT", "a rule is one statement"),
        ("t JOIN u ON t.k = u.k", "", "JOIN", "`JOIN` cannot stand in FROM"),
        ("t AS x, u", "", ",", "`,` cannot stand in FROM"),
        ("t WHERE v > 1", "", "WHERE", "`WHERE` cannot stand in FROM"),
        ("(VALUES (1)) AS u", "", "(", "a sub-query cannot stand in FROM"),
        ("(SELECT k FROM t)", "", "(", "a sub-query in FROM picks rows, and takes all"),
        ("(SELECT * FROM t, u)", "", ",", "`,` cannot stand in FROM"),
        ("(SELECT * FROM t) x JOIN u", "", "JOIN", "`JOIN` cannot stand in FROM"),
        ("(SELECT * FROM t WHERE v > 1 ORDER BY v)", "", "ORDER", "`ORDER` cannot stand in FROM"),
        ("(SELECT * FROM t LIMIT 5)", "", "LIMIT", "`LIMIT` cannot stand in FROM"),
        ("(SELECT * FROM t WHERE PREV(v) > 1)", "", "PREV(v)", "PREV reads rows of a match"),
        ('(SELECT * FROM t WHERE s = "x")', "", '"x"', '"x" is a name, and the event has no'),
        ("(SELECT * FROM t WHERE v + 1)", "", "v + 1", "the condition of WHERE is BIGINT"),
        ("(SELECT * FROM t WHERE u.v > 1)", "", "u.v", "u.v: u is neither the input"),
        ("t", "AS r ORDER BY r.k LIMIT 5", "LIMIT", "`LIMIT` cannot follow the clause"),
    ],
)
def test_around_the_clause(source: str, behind: str, place: str, message: str) -> None:
    """What a query may have there, and a rule has not: one problem, and what is to be done."""
    clause = "(PARTITION BY k MEASURES v AS m PATTERN (A) DEFINE A AS v = 1)"
    text = f"SELECT * FROM {source} MATCH_RECOGNIZE {clause} {behind}"
    with pytest.raises(RuleSetError) as caught:
        load_query(text, "r.sql", EVENT)
    (found,) = caught.value.problems
    assert found.span is not None
    assert text[found.span.column - 1 :][: found.span.length] == place
    assert found.message.startswith(message)
    assert found.allowed


def test_where_in_words() -> None:
    """Where WHERE stands without a sub-query, the statement is given with one."""
    text = "SELECT * FROM t x\n WHERE  v > 1 MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS v = 1)"
    with pytest.raises(RuleSetError) as caught:
        load_query(text, "r.sql")
    allowed = "FROM (SELECT * FROM t x WHERE v > 1) MATCH_RECOGNIZE ( … )"
    assert caught.value.problems[0].allowed == allowed


@pytest.mark.parametrize(
    ("rows", "where"),
    [
        ("(SELECT * FROM t)", None),
        ("(select * from t where v > 1 and s = 'x') AS u", "v > 1 AND s = 'x'"),
        ("(SELECT * FROM t AS e WHERE e.V > 1 OR t.place.City IS NULL)", "v > 1 OR place.City"),
        ('(SELECT * FROM t WHERE "v" > 1 /* ) */ OR (v IN (2)))', "v > 1 OR v IN (2)"),
    ],
)
def test_rows_of_a_sub_query(rows: str, where: str | None) -> None:
    """A sub-query over an input gives the rows that fulfil its condition."""
    clause = "(PARTITION BY k MEASURES v AS m PATTERN (A) DEFINE A AS v = 1)"
    read = load_query(f"SELECT * FROM {rows} MATCH_RECOGNIZE {clause}", "r.sql", EVENT)
    assert read.input == "t"
    found = None if read.where is None else read.where.canonical
    assert found == where or (found is not None and found.startswith(where or "?"))


@pytest.mark.parametrize(
    ("source", "behind"),
    [
        ("t", "AS r;"),
        ("t", '"where" -- WHERE'),
        ("t AS r", "/* ORDER */ x ;"),
        ("`a b`.c r", "\n;"),
        ("t", "AS LIMIT"),
    ],
)
def test_what_may_stand_around(source: str, behind: str) -> None:
    """Names, and quoted ones whatever they are."""
    clause = "(PARTITION BY k MEASURES v AS m PATTERN (A) DEFINE A AS v = 1)"
    load_query(f"SELECT * FROM {source} MATCH_RECOGNIZE {clause} {behind}", "r.sql", EVENT)


def test_mistakes_inside_and_behind() -> None:
    """The clause is read all the same."""
    text = "SELECT * FROM (t) MATCH_RECOGNIZE (PATTERN (A) DEFINE B AS v = 1) LIMIT 1"
    with pytest.raises(RuleSetError) as caught:
        load_query(text, "r.sql", EVENT)
    said = [each.message.partition(" cannot")[0] for each in caught.value.problems]
    assert said[0] == "a sub-query"
    assert said[-1] == "`LIMIT`"
    assert "`B` is not in the pattern" in said


@pytest.mark.parametrize(
    ("pattern", "shown"),
    [
        ("A (){500000000}", "500,000,001"),
        ("A " + "(" * 8 + ")" + "{1000})" * 7 + "{1000}", "more than 1,000,000,000,000"),
        ("A " + "(" * 40 + ")" + "{2})" * 39 + "{2}", "more than 1,000,000,000,000"),
        ("A (" + "()" * 2_000 + "){5000}", "10,000,001"),
        ("A (^){1000000}", "1,000,001"),
        ("A ($ | ()){,1000000}", "5,000,001"),
        ("{- A (){20000} -}", "20,003"),
        ("PERMUTE(" + ", ".join(["A"] * 3000) + ")", "more than 1,000,000,000,000"),
    ],
)
def test_too_large(pattern: str, shown: str) -> None:
    """What would be written out for hours is refused at once, also where it comes to nothing."""
    begin = time.monotonic()
    ((_, message),) = problems(f"PARTITION BY k PATTERN ({pattern}) DEFINE A AS TRUE")
    assert message == f"the pattern makes {shown} instructions; the limit is 10,000"
    assert time.monotonic() - begin < 10


def test_digits() -> None:
    """A number that Python does not even read."""
    found = problems(f"PARTITION BY k PATTERN (A{{{'9' * 5000}}}) DEFINE A AS TRUE")
    assert [message for _, message in found] == ["`999999999…` is too large a number"]


def test_permute_size() -> None:
    """Where PERMUTE is what makes it too large, it is named."""
    with pytest.raises(RuleSetError) as caught:
        query("PARTITION BY k PATTERN (A PERMUTE(A,B,C,D,E,F,G)) DEFINE A AS TRUE")
    (found,) = caught.value.problems
    assert found.allowed == "fewer than the 7 parts of PERMUTE, which makes all orders"


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        ("LAST(SUM(A.v))", "SUM cannot stand inside a navigation"),
        ("SUM(LAST(A.v))", "LAST cannot stand inside an aggregate"),
        ("SUM(COUNT(A.v))", "COUNT cannot stand inside an aggregate"),
        ("LAST(PREV(A.v))", "PREV cannot stand inside a navigation"),
        ("PREV(NEXT(A.v))", "NEXT cannot stand inside a navigation"),
        ("FIRST(LAST(A.v))", "LAST cannot stand inside a navigation"),
        ("PREV(v + LAST(v))", "LAST cannot stand inside a navigation"),
        ("LAST(A.v + B.v)", "LAST must stay with one variable; this one uses A, B"),
        ("SUM(A.v + v)", "SUM must stay with one variable"),
        ("MAX_BY(A.v, B.v)", "MAX_BY must stay with one variable"),
        ("LAST(1)", "LAST needs a column, or CLASSIFIER, to read in that row"),
        ("LAST(A.v, -1)", "the offset of LAST must be a whole number"),
        ("LAST(A.v, v)", "the offset of LAST must be a whole number"),
        ("PREV()", "PREV takes 1 or 2 arguments, not 0"),
        ("FINAL PREV(A.v)", "FINAL cannot stand before PREV"),
        ("RUNNING CLASSIFIER()", "RUNNING cannot stand before CLASSIFIER"),
        ("RUNNING A.v", "RUNNING stands before a call"),
        ("CLASSIFIER(Z)", "there is no pattern variable Z"),
        ("MATCH_NUMBER(1)", "MATCH_NUMBER takes no argument"),
        ("COUNT(Z.*)", "there is no pattern variable Z"),
        ("MAX(DISTINCT v)", "DISTINCT is not allowed in MAX"),
        ("COUNT(*) FILTER (WHERE v > 1)", "'FILTER' is not expected here"),
        ("ARRAY_AGG(v ORDER BY v)", "'ORDER' is not expected here"),
        ("SUM(s)", "SUM needs numbers, not STRING"),
        ("RAND()", "the function RAND is not allowed"),
        ("CLASSIFIER(A.v)", "CLASSIFIER takes a pattern variable, or nothing"),
        ("MAX_BY(v)", "MAX_BY takes 2 arguments, not 1"),
        ("BOOL_AND(v)", "BOOL_AND needs a condition, not BIGINT"),
        ("LAST(EXISTS(A.tags, x -> x > B.v))", "LAST must stay with one variable"),
    ],
)
def test_refused_measure(measure: str, message: str) -> None:
    """The standard's rules of navigation and aggregates."""
    clause = f"PARTITION BY k MEASURES {measure} AS m PATTERN (A B) DEFINE A AS v > 1"
    found = problems(clause)
    assert found[0][1].startswith(message)
    assert len(found) == 1


def test_all_mistakes_at_once() -> None:
    """Mistakes of grammar, names, expressions and types are told together, in their order."""
    clause = """PARTITION BY q
        MEASURES STRT.x AS a, LAST(PREV(v)) AS b
        PATTERN (STRT DOWN++ UP{3,2})
        SUBSET u = (A)
        DEFINE DOWN AS v, UP AS foo(v) > 1"""
    assert [place for place, _ in problems(clause)] == [
        "q",
        "STRT.x",
        "PREV(v)",
        "+",
        "{3,2}",
        "A",
        "v",
        "foo(v)",
    ]


@pytest.mark.parametrize(
    ("select", "place"),
    [
        ("s", "s"),
        ("k, v + 1 AS w", "v"),
        ("k, x + 1", "x + 1"),
        ("k, x || k AS y", "x || k"),
        ("m.k, n.v", "n.v"),
        ("COUNT(*) AS n", "COUNT(*)"),
        ("x AS y, x + 1 AS Y", "x + 1"),
        ('"X"', '"X"'),
    ],
)
def test_refused_select(select: str, place: str) -> None:
    """SELECT takes the columns that the clause gives, and computes of these alone."""
    clause = "PARTITION BY k MEASURES v AS x PATTERN (A) DEFINE A AS TRUE"
    assert [each[0] for each in problems(clause, select)] == [place]


def test_computed_columns() -> None:
    """SELECT computes of the columns of the result, which names say as elsewhere."""
    clause = "PARTITION BY k MEASURES v AS x, COUNT(*) AS n PATTERN (A) DEFINE A AS TRUE"
    read = query(clause, "m.X / n AS share, UPPER(K) AS key, 'low' AS level, n")
    assert [(each.name, str(each.type)) for each in read.outputs] == [
        ("share", "DOUBLE"),
        ("key", "STRING"),
        ("level", "STRING"),
        ("n", "BIGINT"),
    ]
    sources = [getattr(each.source, "sources", each.source) for each in read.outputs]
    assert sources == [((("n",), 1), (("x",), 0)), ((("k",), ("k",)),), (), 1]


@pytest.mark.parametrize(
    ("behind", "place"),
    [
        ("ORDER BY begins", None),
        ("AS r ORDER BY r.k, begins, x DESC;", None),
        ("ORDER BY x", "ORDER"),
        ("order by begins DESC", "order"),
        ("ORDER BY x, begins", "ORDER"),
        ("ORDER BY nothing", "ORDER"),
    ],
)
def test_order_of_the_result(behind: str, place: str | None) -> None:
    """ORDER BY behind the clause may say what holds anyway."""
    clause = "PARTITION BY k ORDER BY ts MEASURES FIRST(ts) AS begins, v AS x PATTERN (A) DEFINE A"
    text = f"SELECT * FROM t MATCH_RECOGNIZE ({clause} AS TRUE) {behind}"
    if place is None:
        load_query(text, "r.sql", EVENT)
        return
    with pytest.raises(RuleSetError) as caught:
        load_query(text, "r.sql", EVENT)
    spans = [problem.span for problem in caught.value.problems]
    assert place in [text[s.column - 1 :][: s.length] for s in spans if s is not None]


def test_quoted_columns() -> None:
    """A quoted name is a column spelt so, and no other; a text has single quotes."""
    clause = 'PARTITION BY "k" PATTERN (A) DEFINE A AS "s" = \'x\' AND place."City" = S'
    assert query(clause).defines["A"].canonical == "s = 'x' AND place.City = s"
    for condition, allowed in [
        ('"S" = 1', "\"s\", as the event spells it; or a text in single quotes: 'S'"),
        ('s = "buy"', "a text in single quotes: 'buy'"),
    ]:
        with pytest.raises(RuleSetError) as caught:
            query(f"PARTITION BY k PATTERN (A) DEFINE A AS {condition}")
        assert [each.allowed for each in caught.value.problems] == [allowed]
    assert problems('PARTITION BY "K" PATTERN (A) DEFINE A AS TRUE')[0][0] == '"K"'
    assert problems('PARTITION BY k PATTERN (A) DEFINE A AS PREV("a".v) = 1')[0][0] == '"a".v'


def test_columns_of_all_rows() -> None:
    """ALL ROWS gives partition, order, measures, and the rest of the input."""
    clause = "PARTITION BY K ORDER BY ts MEASURES v AS x ALL ROWS PER MATCH PATTERN (A) "
    names = [each.name for each in query(f"{clause} DEFINE A AS TRUE", "m.*").outputs]
    assert names == ["k", "ts", "x", "s", "v", "pattern", "tags", "place"]


@pytest.mark.parametrize(
    "text",
    ["/*", r"'\'", "'", '"', "`", "(/*", "{-", "A+?", "PERMUTE(A,", "--", "|(", "''''\\", "A "],
)
def test_linear_time(text: str) -> None:
    """Whatever a text repeats, it is refused soon."""
    begun = time.process_time()
    for clause in ("MEASURES ", "PATTERN ("):
        with pytest.raises(RuleSetError):
            query(f"PARTITION BY k {clause}{text * (40_000 // len(text))}")
    assert time.process_time() - begun < 10


def test_hostile_texts() -> None:
    """Long and deep texts are refused before they are parsed."""
    with pytest.raises(RuleSetError, match="characters; the limit is"):
        load_query("x" * (MAX_TEXT + 1), "r.sql")
    deep = "(" * (MAX_NESTING + 1)
    with pytest.raises(RuleSetError, match="nested too deeply"):
        query(f"PARTITION BY k PATTERN ({deep}")
    with pytest.raises(RuleSetError, match="not complete"):
        load_query("", "r.sql")
