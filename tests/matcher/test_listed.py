"""Timeouts list of each step the first and the last fifty events; matches list all."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import compile_rules
from spark_cep.match_ids import match_id
from spark_cep.matcher.findings.chains import Chains
from spark_cep.matcher.findings.partial import END_OF_TIME
from spark_cep.model import Coordinates, Timeout
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pattern.types import BIGINT, STRING, RecordType
from tests.matcher.runs import taken_by
from tests.reference.listed import listed
from tests.reference.local import LocalJob, Record
from tests.sql_rules import sql_rule

EVENT = RecordType({"key": STRING, "ts": BIGINT, "name": STRING})
TYPES = RecordTypes((("t", "Event", EVENT),))
STEPS = """\
id: r
key: key
pattern:
  - {step: a, where: "name = 'a'", times: 3+, greedy: true}
  - {step: b, after: followed_by, where: "name = 'b'", times: 1+, greedy: true}
  - {step: c, after: followed_by, where: "name = 'c'"}
within: 1 second
after_match: skip_past_last_event
emit: {measures: {n: COUNT(a.*)}}
"""
IN_SQL = (
    "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY key ORDER BY ts MEASURES COUNT(*) AS n"
    " PATTERN (A+ B+ C) WITHIN INTERVAL '1' SECOND"
    " DEFINE A AS name = 'a', B AS name = 'b', C AS name = 'c')"
)


@settings(max_examples=50)
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 120)), max_size=4), max_size=3)
)
def test_chains(runs: list[list[tuple[int, int]]]) -> None:
    """By definition, whatever the order of steps."""
    chains = [[step for step, count in each for _ in range(count)] for each in runs]
    ends = np.cumsum([len(each) for each in chains], dtype=np.int64)
    steps = np.array([step for each in chains for step in each], np.int32)
    whole = Chains(ends, steps, np.arange(len(steps), dtype=np.int32)[::-1].copy())
    short, omitted = whole.listed()
    for number, each in enumerate(chains):
        pairs, places = taken_by(whole, number), listed(each)
        assert taken_by(short, number) == [pairs[place] for place in places]
        assert omitted[number] == len(each) - len(places)


def _timeouts(sql: bool, names: str) -> tuple[LocalJob, list[Timeout]]:
    rules = [sql_rule(IN_SQL, EVENT)] if sql else [r.rule for r in load_rules(STEPS, "r.yaml")]
    job = LocalJob(compile_rules(rules, TYPES), TYPES, columns=True)
    job.advance(
        [
            Record(Coordinates("t", 0, n), n, {"key": "k", "ts": n, "name": name}, "t")
            for n, name in enumerate(names)
        ],
        END_OF_TIME,
    )
    outputs = job.outputs.as_objects()
    return job, outputs.timeouts


def test_a_timeout_lists_the_ends_of_its_steps() -> None:
    """In rules of steps and in SQL; its id is that of the events listed."""
    names = "a" * 130 + "b" * 103
    for sql in (False, True):
        _, found = _timeouts(sql, names)
        timeout = max(found, key=lambda each: each.events_omitted)
        a, b = timeout.steps.values()
        assert [event.at.offset for event in a] == [*range(50), *range(80, 130)]
        assert [event.at.offset for event in b] == [*range(130, 180), *range(183, 233)]
        assert (timeout.events_omitted, timeout.start) == (33, 0)
        assert timeout.match_id == match_id(
            timeout.rule_id, timeout.rule_version, timeout.key, timeout.steps
        )
        assert len({each.match_id for each in found}) == len(found)
        # Measures are of all events.
        assert timeout.measures == ({} if sql else {"n": 130})


def test_matches_are_whole() -> None:
    """However long they are."""
    for sql in (False, True):
        job, _ = _timeouts(sql, "a" * 130 + "b" * 103 + "c")
        match = max(
            job.outputs.as_objects().matches,
            key=lambda each: sum(map(len, each.steps.values())),
        )
        assert [len(events) for events in match.steps.values()] == [130, 103, 1]
