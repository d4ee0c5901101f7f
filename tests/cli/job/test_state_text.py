"""The text of partial matches that a checkpoint has."""

from __future__ import annotations

import io

from rich.console import Console

from spark_cep import Pattern
from spark_cep.cli.job.state_text import show_of_key
from spark_cep.compiler.plan import Plan
from spark_cep.compiler.rule_set import compile_rule
from spark_cep.matcher.findings.partial import FOREVER
from spark_cep.pipeline.driver.commands.state_report import StoredPartialMatch

TOPIC = "events-of-" + "a-long-name-" * 6
PLAN = compile_rule(
    Pattern.begin("first")
    .where("n = 1")
    .followed_by("last")
    .where("n = 2")
    .within("1 hour")
    .rule("pair", key="k")
)


def shown(*partials: StoredPartialMatch, key: str | None = "ann") -> list[str]:
    """The lines in a narrow terminal."""
    out = io.StringIO()
    show_of_key(partials, {("pair", 1): PLAN}, Console(file=out, width=40), key)
    return out.getvalue().splitlines()


def stored(rule: str, deadline: int) -> StoredPartialMatch:
    """A partial match that has taken one event, at the first state behind the start."""
    assert isinstance(PLAN, Plan)
    place = PLAN.states[PLAN.start].edges[0].target
    return StoredPartialMatch(rule, 1, "", 3, 1_000, deadline, [(0, TOPIC, 0, 7)], [place])


def test_lines_do_not_break() -> None:
    """With what a partial match waits for, and its deadline, in the time format of ``why``."""
    assert shown(stored("pair", 3_601_000)) == [
        "",
        "Open partial matches of key ann",
        "pair, version 1: began 1970-01-01T00:00:01Z, waits for last, until 1970-01-01T01:00:01Z",
        f"  first  {TOPIC}/0/7",
    ]


def test_of_a_rule_that_is_not_known() -> None:
    """By the numbers of its steps; without a window it has no deadline."""
    assert shown(stored("gone", FOREVER))[2:] == [
        "gone, version 1: began 1970-01-01T00:00:01Z",
        f"  0  {TOPIC}/0/7",
    ]


def test_none() -> None:
    """Rules without a key have none either."""
    assert shown(key=None) == [
        "",
        "Open partial matches of rules without key",
        "none; events that the watermark has not passed yet are not included",
    ]
