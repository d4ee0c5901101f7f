"""Which program a pattern becomes, and what of the past its places depend on."""

from __future__ import annotations

import pytest

from spark_cep.compiler.row_pattern import RowPatternPlan, plan_query
from spark_cep.pattern.sql import load_query
from spark_cep.pattern.sql.program_size import program_size

PROGRAMS = {
    "A": "LABEL A; DONE",
    "A B": "LABEL A; LABEL B; DONE",
    "^ A $": "START; LABEL A; END; DONE",
    "A | B | C": "SPLIT 1, 3; LABEL A; JUMP 7; SPLIT 4, 6; LABEL B; JUMP 7; LABEL C; DONE",
    "A?": "SPLIT 1, 2; LABEL A; DONE",
    "A??": "SPLIT 2, 1; LABEL A; DONE",
    "A*": "SPLIT 1, 3; LABEL A; SPLIT 1, 3; DONE",
    "A*?": "SPLIT 3, 1; LABEL A; SPLIT 3, 1; DONE",
    "A+": "LABEL A; SPLIT 0, 2; DONE",
    "A+?": "LABEL A; SPLIT 2, 0; DONE",
    "A{2}": "LABEL A; LABEL A; DONE",
    "A{2,}": "LABEL A; LABEL A; SPLIT 1, 3; DONE",
    "A{1,3}": "LABEL A; SPLIT 2, 5; LABEL A; SPLIT 4, 5; LABEL A; DONE",
    "A{,2}?": "SPLIT 4, 1; LABEL A; SPLIT 4, 3; LABEL A; DONE",
    "PERMUTE(A, B)": "SPLIT 1, 4; LABEL A; LABEL B; JUMP 6; LABEL B; LABEL A; DONE",
    "{- A {- B -} -} C": "SAVE; LABEL A; LABEL B; SAVE; LABEL C; DONE",
    "(A | ())*": "SPLIT 1, 5; SPLIT 2, 4; LABEL A; JUMP 4; SPLIT 1, 5; DONE",
}


def _plan_of(pattern: str, defines: str = "") -> RowPatternPlan:
    variables = [name for name in "ABC" if name in pattern]
    whole = pattern if variables else f"{pattern} | A"
    text = defines or f"{(variables or ['A'])[0]} AS TRUE"
    statement = f"SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k PATTERN ({whole}) DEFINE {text})"
    return plan_query(load_query(statement, "p.sql"))


def test_places_with_the_same_distinctions_have_one_tuple() -> None:
    """A loop of many alternatives with an aggregate each would have the square of them."""
    count = 300
    names = [f"A{number}" for number in range(count)]
    defines = ", ".join(f"{name} AS SUM({name}.v) < 9" for name in names)
    clause = f"PARTITION BY k PATTERN (({' | '.join(names)})+ B) DEFINE {defines}"
    text = f"SELECT * FROM t MATCH_RECOGNIZE ({clause})"
    found = plan_query(load_query(text, "p.sql")).distinctions
    assert max(map(len, found)) == count
    assert len({id(each) for each in found}) == 2


@pytest.mark.parametrize("pattern", PROGRAMS)
def test_program(pattern: str) -> None:
    """The instructions, and that their number was reckoned right."""
    plan = _plan_of(pattern)
    lines = [line.partition(" ")[2] for line in str(plan.program).splitlines()]
    assert "; ".join(lines) == PROGRAMS[pattern]
    if "{-" not in pattern:
        empties = pattern.count("()")
        size = program_size(plan.query.pattern) - empties
        assert size + 1 == len(plan.program.instructions)


def test_plan_text() -> None:
    """A plan prints itself; it can be pickled."""
    plan = plan_query(
        load_query(
            """SELECT * FROM t MATCH_RECOGNIZE (
                PARTITION BY k ORDER BY ts
                MEASURES a.price AS p, FINAL COUNT(u.*) AS n
                ALL ROWS PER MATCH AFTER MATCH SKIP TO LAST u
                PATTERN (A {- B+? -}) WITHIN INTERVAL '5' MINUTE
                SUBSET u = (a, b)
                DEFINE B AS price > PREV(price) AND SUM(a.price) < 10)""",
            "p.sql",
        )
    )
    assert str(plan) == (
        "row pattern A {- B+? -}, within 300000 ms\n"
        "  all rows per match show empty matches, skip to last a|b\n"
        "  B: price > PREV(RUNNING LAST(price), 1) AND RUNNING SUM(A.price) < 10\n"
        "  0 LABEL A\n"
        "  1 SAVE\n"
        "  2 LABEL B\n"
        "  3 SPLIT 4, 2\n"
        "  4 SAVE\n"
        "  5 DONE\n"
        "  p: RUNNING LAST(A.price)\n"
        "  n: FINAL COUNT(A|B.*)"
    )
    assert plan.reach == 1


@pytest.mark.parametrize(
    ("condition", "depends"),
    [
        ("v > PREV(v, 3) AND NEXT(v) > FIRST(v)", []),
        ("LAST(C.v) > 1 AND CLASSIFIER() = 'C' AND MATCH_NUMBER() = 1", []),
        ("COUNT(*) > 2", []),
        ("LAST(A.v, 1) > v", [("A", "LAST", 2)]),
        ("PREV(FIRST(B.v)) > v", [("B", "FIRST", 1)]),
        ("SUM(A.v) > v", [("A", None, 0)]),
        ("COUNT(CLASSIFIER()) > 1", [("", None, 0)]),
        ("PREV(CLASSIFIER()) = 'A'", [("", "LAST", 1)]),
    ],
)
def test_distinctions(condition: str, depends: list[tuple[str, str | None, int]]) -> None:
    """What tells threads apart is what the conditions ahead read, and nothing behind the last."""
    plan = _plan_of("A B C", f"C AS {condition}")
    found = [("".join(each.variables), each.pick, each.count) for each in plan.distinctions[0]]
    assert found == depends
    assert plan.distinctions[-1] == ()
