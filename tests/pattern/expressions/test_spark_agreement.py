"""Every function and operator gives what Spark gives, but for the table of ``docs/expressions.md``.

``make test-spark-sql ARGS='--values 2000 --seed 7'`` compares many more values.
"""

from __future__ import annotations

import math
import re
import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from spark_cep.pattern.expressions import Expression, bind, check_types, parse
from spark_cep.pattern.expressions.functions import FUNCTIONS
from spark_cep.pattern.expressions.nodes import SYMBOLS, Call, walk
from spark_cep.pattern.types import DATE, FLOAT, TIMESTAMP, RecordType
from tests.pattern.expressions.spark_agreement import (
    EVENT,
    TEXT,
    Difference,
    compared,
    frame,
)
from tests.pattern.expressions.spark_forms import casts_of_text, forms
from tests.pattern.expressions.spark_values import events, odd_texts

PAGE = Path(__file__).parents[3] / "docs" / "expressions.md"
VALUES, TEXTS = 60, 600
_DAYS = range(-719_162, 2_932_897)
_MICROS = range(-719_162 * 86_400_000_000, 2_932_897 * 86_400_000_000)
_LAST_DIGITS = re.compile(
    r"(EXP|LN|LOG|LOG10|LOG2|POWER|SIN|COS|TAN|ASIN|ACOS|ATAN|ATAN2|RADIANS|DEGREES)\("
)
_ZONED = re.compile(r"(YEAR|MONTH|DAY|DAYOFWEEK|HOUR|MINUTE|SECOND)\(a_t, |CONVERT_TIMEZONE\(")


class Row(NamedTuple):
    """A row of the table of the page; values are texts."""

    example: str
    here: str
    spark: str


def rows() -> dict[str, Row]:
    """The table, by difference."""
    part = PAGE.read_text("utf-8").partition("## Agreement with Spark SQL")[2]
    lines = [line for line in part.partition("\n#")[0].splitlines() if line.startswith("| ")]
    found = {}
    for line in lines[2:]:
        name, *cells = (cell.strip() for cell in line.strip("|").split(" | "))
        found[name] = Row(*(cell.strip("`") for cell in cells[:3]))
    return found


def _beyond_calendar(of: Difference) -> bool:
    if of.here is not None:
        return False
    if _ZONED.match(of.form.here):
        # The clock of a zone is beyond it.
        return not 2 < of.event["a_t"].timetuple().tm_year < 9998
    if of.kind == TIMESTAMP:
        return of.spark not in _MICROS
    return of.kind == DATE and of.spark not in _DAYS


def _text(of: Difference) -> str:
    return str(of.event.get("s") or "")


def _cast_of_text(of: Difference, target: str) -> bool:
    return of.form.here.startswith(f"CAST(s AS {target}") and of.here is None


def _number(value: Any) -> float:
    return float(value)


#: By difference of the page's table, which values it is about.
KNOWN: Mapping[str, Callable[[Difference], bool]] = {
    "calendar": _beyond_calendar,
    "clock alone": lambda of: (
        _cast_of_text(of, "TIMESTAMP")
        and re.match(r"[\s\x00-\x20]*(T|[0-9]{1,2}:)", _text(of)) is not None
    ),
    "zone of three letters": lambda of: (
        _cast_of_text(of, "TIMESTAMP") and re.search(r"[A-Z]{3}\s*$", _text(of)) is not None
    ),
    "NULL position": lambda of: (
        of.form.here.startswith("LOCATE(") and of.event["c_i"] is None and of.spark == 0
    ),
    "last digits": lambda of: (
        _LAST_DIGITS.match(of.form.here) is not None
        and of.here is not None
        and math.isclose(of.here, of.spark, rel_tol=1e-14)
    ),
    "spelling of a DOUBLE": lambda of: (
        _cast_of_text(of, "DOUBLE") and re.search(r"[xX]|[+-]NaN", _text(of)) is not None
    ),
    "digits of other scripts": lambda of: _cast_of_text(of, "DECIMAL") and not _text(of).isascii(),
    "digits of a DOUBLE": lambda of: (
        re.match(r"CAST\(a_[fd] AS (STRING|DECIMAL)", of.form.here) is not None
        and of.here is not None
        and of.spark is not None
        and _number(of.here) == _number(of.spark)
    ),
    "sign of a long DECIMAL": lambda of: False,
    "DATE and days": lambda of: False,
    "FLOAT": lambda of: False,
    "characters beyond U+FFFF": lambda of: (
        of.form.here.startswith("REGEXP_") and max(of.event["a_s"]) > "\uffff"
    ),
    "regular expressions": lambda of: False,
    "separator of SPLIT": lambda of: False,
}
"""Those that are about none are kept out of the comparison by its forms and values."""


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """Spark, which raises no errors and compiles nothing for so few values."""
    settings = {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    before = {name: str(spark.conf.get(name)) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield spark
    for name, value in before.items():
        spark.conf.set(name, value)


def differences(session: SparkSession, values: int, texts: int, seed: int) -> list[Difference]:
    """What differs, of all forms."""
    random = Random(seed)
    given = events(values, random)
    found = list(compared(frame(session, given), given, EVENT, list(forms())))
    odd = [{"s": text} for text in odd_texts(texts, random)]
    return [*found, *compared(frame(session, odd), odd, TEXT, list(casts_of_text()))]


def unexplained(found: list[Difference]) -> list[str]:
    """Those that the table does not have, in words."""
    return [str(each) for each in found if not any(known(each) for known in KNOWN.values())]


@pytest.mark.spark
def test_agreement(session: SparkSession) -> None:
    """Ends of types, NULL, NaN, odd texts and random values have Spark's answers."""
    assert unexplained(differences(session, VALUES, TEXTS, seed=34)) == []


@pytest.mark.spark
@pytest.mark.parametrize("name", rows())
def test_row_of_the_page(session: SparkSession, name: str) -> None:
    """A difference is as the page says, in Spark, too."""
    if name == "digits of a DOUBLE" and _java(session) >= 19:  # as the page says
        pytest.skip("Java 19 and newer write the shortest text")
    row = rows()[name]
    e, event = parse(row.example), RecordType({"f": FLOAT})
    kind = check_types(e, event, {})
    data = session.createDataFrame([(0.1,)], "f FLOAT")
    text = f"unix_micros({row.example})" if kind == TIMESTAMP else row.example
    (answer,) = data.selectExpr(text).collect()[0]
    ours = bind(e, dict.fromkeys(e.columns, 0), {}, event)([0.10000000149011612], ())
    assert (_shown(ours), _shown(answer)) == (row.here, _as_answer(row.spark))


def _java(session: SparkSession) -> int:
    jvm: Any = session._jvm
    return int(jvm.System.getProperty("java.specification.version"))


def _shown(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    return f"'{value}'" if isinstance(value, str) else str(value)


def _as_answer(text: str) -> str:
    """A timestamp in microseconds."""
    if not text.startswith("TIMESTAMP"):
        return text
    e: Expression = parse(f"UNIX_MICROS({text})")
    return str(bind(e, {}, {})((), ()))


def test_the_page_has_each_difference() -> None:
    """What the comparison lets pass is in the table, and nothing else is."""
    assert list(rows()) == list(KNOWN)


def test_every_function_and_operator_is_compared() -> None:
    """None is left out."""
    nodes = [node for form in forms() for node in walk(parse(form.here).node)]
    compared = {node.operator for node in nodes if isinstance(node, Call)}
    assert (FUNCTIONS.keys() | SYMBOLS) - compared == set()


def main() -> int:
    """Compare more values than the tests do, and count."""
    from tempfile import TemporaryDirectory

    from tests.local_spark import local_spark

    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--values", type=int, default=500)
    parser.add_argument("--texts", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with TemporaryDirectory() as folder:
        session = local_spark(Path(folder))
        session.conf.set("spark.sql.ansi.enabled", "false")
        found = differences(session, given.values, given.texts, given.seed)
        session.stop()
    count = len(list(forms())) * given.values + len(list(casts_of_text())) * given.texts
    counts = Counter(
        next((name for name, known in KNOWN.items() if known(each)), "not in the table")
        for each in found
    )
    print(f"{count:,} values compared, {len(found):,} differ", *counts.items(), sep="\n  ")
    wrong = unexplained(found)
    print(*wrong[:100], sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
