"""Rules and cases of tests, as files."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from spark_cep.cases.coverage.coverage import Coverage
from spark_cep.cases.coverage.observed import observing
from spark_cep.cases.document.files import Suite, suites
from spark_cep.cases.running.outcome import CaseOutcome, outcome
from spark_cep.matcher.keys import KeysMatcher

RULE = """
    id: two
    key: user_id
    pattern:
      - step: a
        where: kind = 'a'
      - step: b
        after: followed_by
        where: kind = 'b' AND amount > LAST(a.amount)
    within: 1 minute
    emit:
      measures:
        rise: LAST(b.amount) - LAST(a.amount)
"""


def written(folder: Path, name: str, text: str) -> Path:
    """A file of ``folder`` with this text, without its margin."""
    file = folder / name
    file.write_text(dedent(text).lstrip("\n"), "utf-8")
    return file


def read(folder: Path, cases: str, rule: str = RULE) -> Suite:
    """The cases of a file beside a rule."""
    written(folder, "two.yaml", rule)
    (suite,) = suites([written(folder, "two.cases.yaml", cases)], {})
    return suite


def outcomes(suite: Suite, coverage: Coverage | None = None) -> list[CaseOutcome]:
    """The outcomes of all cases."""
    matcher = KeysMatcher if coverage is None else observing(coverage)
    return [outcome(suite, case, matcher) for case in suite.file.cases]


def told(folder: Path, cases: str, rule: str = RULE) -> str:
    """The difference of the only case, as text."""
    (one,) = outcomes(read(folder, cases, rule))
    assert not one.passed
    return "\n".join(one.lines())
