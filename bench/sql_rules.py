"""Rules in SQL next to the same in YAML, and to Flink SQL, which runs the same MATCH_RECOGNIZE.

The stream has log-ins alone, of which one in four fails: in a row pattern every row counts. About
one event in a hundred ends a match.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from bench.comparison import Run, in_turn, profile, ratio
from bench.contenders import Course, flink, job
from bench.events import logins
from bench.flink_program import FlinkProgram
from bench.outputs import row_line_of
from bench.testbed import TestBed, Topic
from bench.throughput import runs_of, warm_up_events

#: In short streams, too, so that they have matches.
_EVENTS_OF_USER = 40
TYPES = {"login_ok": 3, "login_fail": 1}
#: What tells the sides' matches apart: ours names all of their rows.
_ROWS = {"first_row": "FIRST(kafka_offset)", "last_row": "LAST(kafka_offset)"}
_SQL, _YAML = "ours, SQL", "ours, YAML"
_HEAP, _ROCKSDB = "Flink SQL, heap", "Flink SQL, RocksDB"
_OF_YAML, _OF_FLINK = 0.5, 2.0


@dataclass(frozen=True)
class Scenario:
    """A clause, and the steps of a rule that finds the same. Both have the ``measures``."""

    name: str
    measures: Mapping[str, str]
    pattern: str
    define: str
    steps: str

    @property
    def in_sql(self) -> str:
        """The rule in SQL, as a file."""
        columns = ", ".join(self.measures)
        return f"-- id: {self.name}\nSELECT {columns} FROM {self._clause(self.measures)}\n"

    @property
    def in_yaml(self) -> str:
        """The rule of steps, as a file."""
        document = {
            "id": self.name,
            "key": "user_id",
            "pattern": yaml.safe_load(self.steps),
            "within": "1 minute",
            "after_match": "skip_past_last_event",
            "emit": {"measures": dict(self.measures)},
        }
        return yaml.safe_dump(document, sort_keys=False)

    @property
    def in_flink(self) -> str:
        """The statement of Flink SQL, which has the key and the rows in its result, too. Flink SQL
        counts values, not rows; no value of the stream is NULL."""
        measures = {
            name: expression.replace(".*", ".amount") for name, expression in self.measures.items()
        }
        return f"SELECT * FROM {self._clause({**_ROWS, **measures})}"  # noqa: S608  our own

    def _clause(self, measures: Mapping[str, str]) -> str:
        columns = ", ".join(f"{expression} AS {name}" for name, expression in measures.items())
        return f"""events MATCH_RECOGNIZE (
  PARTITION BY user_id ORDER BY ts
  MEASURES {columns}
  ONE ROW PER MATCH
  AFTER MATCH SKIP PAST LAST ROW
  PATTERN ({self.pattern}) WITHIN INTERVAL '1' MINUTE
  DEFINE {self.define}
)"""


SCENARIOS = (
    Scenario(
        "login-failures",
        {"first_failure": "FIRST(fail.amount)", "attempts": "COUNT(fail.*)"},
        "fail{3,} ok",
        "fail AS event_type = 'login_fail', ok AS event_type = 'login_ok'",
        """\
- {step: fail, where: event_type = 'login_fail', times: 3+, loop: consecutive, greedy: true}
- {step: ok, after: next, where: event_type = 'login_ok'}
""",
    ),
    Scenario(
        "price-drop",
        {"high": "h.amount", "low": "l.amount"},
        "h l",
        "l AS l.amount < 0.02 * h.amount",
        """\
- {step: h}
- {step: l, after: next, where: amount < 0.02 * h.amount}
""",
    ),
    # LAST(…, 1) without a variable is the row before, as PREV is, which Flink SQL lacks.
    Scenario(
        "v-shape",
        {"high": "s.amount", "low": "LAST(d.amount)", "up": "u.amount"},
        "s d{4,} u",
        "d AS amount < LAST(amount, 1), u AS amount > LAST(amount, 1)",
        """\
- {step: s}
- step: d
  after: next
  where: amount < COALESCE(d.amount, s.amount)
  times: 4+
  loop: consecutive
- {step: u, after: next, where: amount > d.amount}
""",
    ),
)


def sql_rules(
    bed: TestBed, program: FlinkProgram, *, events: int, rocksdb_events: int, runs: int
) -> dict[str, Any]:
    """The ratios of each scenario: to the rule in YAML, to Flink SQL with heap state and, over
    fewer events, with RocksDB."""
    ours, theirs = bed.our_side(), bed.peer(program)
    topic, small, few, fewest = (
        bed.filled(name, logins(count, count // _EVENTS_OF_USER, TYPES), count)
        for name, count in (
            ("logins-alone", events),
            ("logins-alone-warm-up", warm_up_events(events)),
            ("logins-alone-rocksdb", rocksdb_events),
            ("logins-alone-rocksdb-warm-up", rocksdb_events // 10),
        )
    )
    ratios, profiles, all_runs = [], {}, {}
    for scenario in SCENARIOS:
        in_sql, in_yaml = (
            _course(bed, scenario, language, topic, small) for language in ("sql", "yaml")
        )
        results = in_turn(
            [
                job(bed, ours, in_sql, _SQL),
                job(bed, ours, in_yaml, _YAML),
                flink(bed, theirs, in_sql, name=_HEAP),
            ],
            runs,
            bed.say,
        )
        short = replace(in_sql, topic=few, warm_up=fewest)
        with_rocksdb = in_turn(
            [
                job(bed, ours, short, _SQL),
                flink(bed, theirs, short, state="rocksdb", name=_ROCKSDB),
            ],
            runs,
            bed.say,
        )
        ratios += [
            ratio(scenario.name, results, _SQL, _YAML, _OF_YAML).document(),
            ratio(scenario.name, results, _SQL, _HEAP).document(),
            ratio(scenario.name, with_rocksdb, _SQL, _ROCKSDB, _OF_FLINK).document(),
        ]
        for name in (_SQL, _YAML):
            profiles[f"{scenario.name}, {name.removeprefix('ours, ')}"] = profile(results[name])
        all_runs[scenario.name] = runs_of(_named(results, topic) | _named(with_rocksdb, few))
    return {"ratios": ratios, "profiles": profiles, "runs": all_runs}


def write_rule(folder: Path, scenario: Scenario, language: str) -> Path:
    """A folder with the rule in that ``language``, ``sql`` or ``yaml``."""
    folder.mkdir(parents=True, exist_ok=True)
    text = scenario.in_sql if language == "sql" else scenario.in_yaml
    (folder / f"{scenario.name}.{language}").write_text(text, "utf-8")
    return folder


def _course(bed: TestBed, scenario: Scenario, language: str, topic: Topic, small: Topic) -> Course:
    """Timeouts do not count: a rule of steps has one for each way that was open, a row pattern one
    for each row at which the search began, Flink SQL none."""
    return Course(
        topic,
        small,
        scenario.name,
        write_rule(bed.folder / "rules" / f"{scenario.name}-{language}", scenario, language),
        statement=scenario.in_flink,
        lines=row_line_of,
        timeouts=False,
    )


def _named(results: Mapping[str, list[Run]], topic: Topic) -> dict[str, list[Run]]:
    return {f"{name} ({topic.records:,})": runs for name, runs in results.items()}
