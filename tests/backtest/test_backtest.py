"""Back-tests: reports, files, expectations, comparisons, by the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import parse

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from spark_cep.backtest import example_accounts, replay
from spark_cep.backtest.unpaired import NEW, OLD, Compared, Unpaired
from spark_cep.cli.main import app
from spark_cep.model import Coordinates
from spark_cep.recorded import merging
from spark_cep.recorded.files import avro_files
from spark_cep.runner.batch import BatchResults
from spark_cep.runner.runner import Runner
from tests.recorded.logins import FORMS, RULE, START, iso, login, logins

ABSENT = """\
---
id: quiet
key: user
pattern:
  - {step: fail, where: "kind = 'fail'"}
  - {step: ok, after: followed_by, where: "kind = 'never'"}
within: 5 seconds
"""
EVENTS = [*logins(3), login("bob", "fail", 12), login("bob", "fail", 13), login("eve", "x", 14)]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with rules and events, which the command runs in."""
    monkeypatch.chdir(tmp_path)
    FORMS["avro"](Path("logins.avro"), EVENTS)
    Path("rules.yaml").write_text(RULE + ABSENT, "utf-8")
    return tmp_path


def backtest(*arguments: str, code: int = 0) -> Result:
    """The command, over the events without disorder."""
    given = ["backtest", "-r", "rules.yaml", "-i", "logins.avro", "--allowed-disorder", "0 s"]
    found = CliRunner().invoke(app, [*given, *arguments])
    assert found.exit_code == code, found.output
    return found


def test_the_report(files: Path) -> None:
    """Counts by rule and day, keys, histogram, cost, partial matches that are open."""
    found: Any = json.loads(backtest("--json").stdout)
    fails, quiet = found["rules"]
    assert found["records"] == len(EVENTS)
    assert (fails["id"], fails["version"], fails["matches"], fails["timeouts"]) == (
        "fails",
        3,
        3,
        0,
    )
    assert fails["by_day"] == {"2023-11-14": {"matches": 3, "timeouts": 0}}
    assert {each["key"]: each["matches"] for each in fails["top_keys"]} == {
        "ann 0": 1, "ann 1": 1, "ann 2": 1,
    }  # fmt: skip
    assert fails["partial_matches"]["open"] == 2
    assert (quiet["matches"], quiet["timeouts"]) == (0, 8)
    assert fails["seconds"] > 0
    assert found["histogram"] == [
        {"from": "2023-11-14T22:13:00Z", "to": "2023-11-14T22:14:00Z", "matches": 3}
    ]
    first = found["longest_partial_matches"][0]
    assert (first["rule_id"], first["start"]) == ("quiet", iso(START + 10_000)[:19] + "Z")
    assert first["waits_for"] == ["ok"]
    assert found["watermark"] == iso(START + 14_000)[:19] + "Z"
    assert "idle inputs" in found["not_simulated"]
    text = backtest().stdout
    assert "Matches: 3, late events: 0, dead letters: 0" in text
    assert "2023-11-14 22:13  ████████████████████████████████████████ 3" in text


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_files_of_results(form: str, files: Path) -> None:
    """The fields of output records, but for processing time."""
    backtest("-o", "found", "-f", form, "--at-end", "decide")
    folder = files / "found"
    assert {each.name for each in folder.iterdir()} == {
        "report.json",
        *(f"{n}.{form}" for n in ("matches", "match-rows", "timeouts", "late", "dead-letters")),
    }

    def rows(kind: str) -> list[dict[str, Any]]:
        file = folder / f"{kind}.{form}"
        if form == "parquet":
            return pq.read_table(file).to_pylist()  # type: ignore[no-any-return]  # PyArrow's
        return [json.loads(line) for line in file.read_text("utf-8").splitlines()]

    match = rows("matches")[1]
    assert (match["rule_id"], match["key"]) == ("fails", "ann 1")
    measures = match["measures"]
    measures = json.loads(measures) if form == "parquet" else measures
    assert measures == {"sum": 4.0, "last": iso(START + 7_000)[:19] + "Z"}
    assert [each["offset"] for each in match["steps"][0]["events"]] == [4, 5, 6]
    assert "emitted_at" not in match
    assert len(rows("timeouts")) == 13
    assert rows("late") == rows("dead-letters") == []


EXPECTATIONS = """\
expect:
  - {rule: fails, matches: 3}
  - {rule: fails, key: ann 1, matches: 1, measures: {sum: 4.0}}
  - {rule: quiet, timeouts: 5+}
late: 0
"""


def test_as_expected(files: Path) -> None:
    """Exit code 0, and each expectation is a test of JUnit."""
    Path("expect.yaml").write_text(EXPECTATIONS, "utf-8")
    text = backtest("--expect", "expect.yaml", "--junit", "junit.xml").stdout
    assert text.count("\nok      ") == 4
    suite = parse("junit.xml").getroot()[0]  # noqa: S314  our own file
    assert (suite.get("tests"), suite.get("failures")) == ("4", "0")
    names = [case.get("name") for case in suite]
    assert names[1] == "1 match of fails with key ann 1 with sum = 4.0"


@pytest.mark.parametrize(
    ("old", "new", "wrong"),
    [
        ("matches: 3", "matches: 4+", "FAILED  4 or more matches of fails: found 3"),
        ("sum: 4.0", "sum: 5", "found 0"),
        ("late: 0", "late: 1..2", "FAILED  1 to 2 late events: found 0"),
        ("  - {rule: quiet, timeouts: 5+}\n", "", "no timeout of quiet that no entry expects"),
    ],
)
def test_not_as_expected(old: str, new: str, wrong: str, files: Path) -> None:
    """Exit code 1; the text says what was found."""
    Path("expect.yaml").write_text(EXPECTATIONS.replace(old, new), "utf-8")
    found = backtest("--expect", "expect.yaml", "--junit", "junit.xml", code=1)
    assert wrong in found.stdout
    assert parse("junit.xml").getroot().get("failures") == "1"  # noqa: S314  our own file


@pytest.mark.parametrize("policy", ["warn", "ignore"])
def test_unexpected_results_may_be_there(policy: str, files: Path) -> None:
    """As the file says."""
    text = f"unexpected: {policy}\nexpect: [{{rule: fails, matches: 3}}]\n"
    Path("expect.yaml").write_text(text, "utf-8")
    assert ("warn  " in backtest("--expect", "expect.yaml").stdout) is (policy == "warn")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("expect: [{rule: fail}]", "did you mean `fails`?"),
        ("expect: [{rule: fails, matches: many}]", "a least number as 2+"),
        ("expected: []", "unknown key `expected`"),
        ("expected: []", "did you mean `expect`?"),
        ("expected: []", "1 | expected: []\n    ^^^^^^^^\n"),
        ("expect: [{rule: fails, matches: 1, timeouts: 1}]", "either matches or timeouts"),
        ("expect: [{rule: fails, matches: 4..2}]", "ends before it begins"),
        ("expect: [{rule: fails, measures: {sums: 1}}]", "did you mean `sum`?"),
    ],
)
def test_wrong_expectations(text: str, message: str, files: Path) -> None:
    """The place in the file is told."""
    Path("expect.yaml").write_text(text, "utf-8")
    found = backtest("--expect", "expect.yaml", code=3)
    assert message in found.stderr
    assert "expect.yaml:1:" in found.stderr


def test_comparison(files: Path) -> None:
    """What only the old or the new rules find, and measures that changed; versions do not count."""
    other = RULE.replace("version: 3", "version: 4").replace("times: 3}", "times: 2}")
    Path("other.yaml").write_text(other + ABSENT, "utf-8")
    Path("sums.yaml").write_text(
        RULE.replace("SUM(fail.amount)", "MAX(fail.amount)").replace("version: 3", "version: 9"),
        "utf-8",
    )
    found: Any = json.loads(backtest("--compare", "other.yaml", "--json").stdout)
    fails, quiet = found["rules"]
    assert fails["difference"] == ["step `fail`: it is taken 2 times; before: 3"]
    assert (fails["both"], fails["only_old"], fails["only_new"]) == (0, 3, 3)
    assert fails["examples"]["only_old"][0]["events"] == {"fail": 3, "ok": 1}
    assert (quiet["both"], quiet["only_old"], quiet["only_new"]) == (8, 0, 0)
    lacks = fails["examples"]["only_old"][0]["why"]
    assert lacks[0].startswith("partial match ")
    assert "and ended, match: complete" in lacks[0]
    text = backtest("--compare", "sums.yaml").stdout
    assert "sum 4.0 → 2.0" in text
    assert "it is gone" in text


def test_a_comparison_in_bounded_memory(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results that the other side finds in another batch are paired in the end; of many keys the
    first ones are told of, and of one with many events it is said."""
    monkeypatch.setattr(merging, "_ROWS", 4)
    monkeypatch.setattr(avro_files, "ROWS_TOGETHER", 2)
    monkeypatch.setattr(example_accounts, "_MOST_EVENTS", 3)
    Path("none.yaml").write_text(RULE.replace("kind = 'ok'", "kind = 'never'"), "utf-8")
    found: Any = json.loads(backtest("--compare", "rules.yaml", "--json").stdout)
    assert [(each["both"], each["only_new"]) for each in found["rules"]] == [(3, 0), (8, 0)]
    found = json.loads(backtest("--compare", "none.yaml", "--json").stdout)
    examples = found["rules"][0]["examples"]["only_old"]
    assert [each["why"][:1] for each in examples] == [
        ["the key has more than 3 events: ask `spark-cep why` of it"],
        ["the key has more than 3 events: ask `spark-cep why` of it"],
        [],
    ]


def test_results_that_come_at_other_times_are_paired() -> None:
    """And those that never come are alone, the first ones at hand."""
    unpaired = Unpaired()
    results = [
        Compared(
            "match", f"r{n % 2}", "k", n, 100 - n, (("a", (Coordinates("t", 0, n),)),), {"m": n}
        )
        for n in range(50)
    ]
    by_id = [(str(each.start), each) for each in results]
    unpaired.add(OLD, by_id[:10])
    unpaired.add(NEW, by_id[5:20])
    unpaired.add(OLD, by_id[30:])
    unpaired.add(NEW, [])
    unpaired.end()
    pairs = sorted(unpaired.pairs(), key=lambda pair: pair[0].start)
    assert pairs == [(each, each) for each in results[5:10]]
    assert [unpaired.count(f"r{n}", side) for n in (0, 1) for side in (OLD, NEW)] == [13, 5, 12, 5]
    assert unpaired.first("r0", OLD, 2) == [results[48], results[46]]
    unpaired.close()


def test_the_cost_of_a_rule_is_that_of_its_events(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The matcher's code is compiled, or loaded, before the first event."""
    begun: list[str] = []
    monkeypatch.setattr(replay, "prepare_steps", lambda: begun.append("code"))

    def apply(*_: object) -> BatchResults:
        begun.append("batch")
        return BatchResults()

    monkeypatch.setattr(Runner, "apply", apply)
    backtest()
    assert begun[:2] == ["code", "batch"]
    assert begun.count("code") == 1


def test_rows_of_matches_are_counted(files: Path) -> None:
    """A rule with ALL ROWS PER MATCH writes rows in place of matches."""
    Path("rules.yaml").unlink()
    Path("rows.sql").write_text(
        "-- id: rows\nSELECT * FROM logins MATCH_RECOGNIZE (PARTITION BY user"
        " ORDER BY ts MEASURES kind AS found ALL ROWS PER MATCH AFTER MATCH SKIP PAST LAST ROW"
        " PATTERN (a) WITHIN INTERVAL '5' SECOND DEFINE a AS kind = 'fail')\n",
        "utf-8",
    )
    fails = sum(event["kind"] == "fail" for event in EVENTS)
    given = ["backtest", "-r", "rows.sql", "-i", "logins.avro", "--allowed-disorder", "0 s"]
    found = CliRunner().invoke(app, given)
    assert found.exit_code == 0, found.output
    assert f"Matches: 0, match rows: {fails}, late events: 0" in found.stdout
    assert ["rows", "1", "0", str(fails)] in [line.split()[:4] for line in found.stdout.split("\n")]


def test_a_rule_in_sql_is_charged_with_its_own_time(files: Path) -> None:
    """Its events are all of its input: each is a row, and rows of a match are adjacent."""
    Path("sql.sql").write_text(
        "-- id: sql\n"
        "SELECT * FROM logins MATCH_RECOGNIZE (PARTITION BY user ORDER BY ts"
        " MEASURES LAST(B.ts) AS last ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW"
        " PATTERN (A B) WITHIN INTERVAL '1' MINUTE"
        " DEFINE A AS kind = 'fail', B AS kind = 'fail')",
        "utf-8",
    )
    alone: Any = json.loads(backtest("--json", "-r", "sql.sql").stdout)
    (sql,) = alone["rules"]
    assert (sql["matches"], sql["events"]) == (4, len(EVENTS))
    assert sql["seconds"] > 0
    Path("both").mkdir()
    Path("both/rules.yaml").write_text(RULE + ABSENT, "utf-8")
    Path("both/sql.sql").write_text(Path("sql.sql").read_text("utf-8"), "utf-8")
    together: Any = json.loads(backtest("--json", "-r", "both").stdout)
    by_id = {each["id"]: each for each in together["rules"]}
    assert by_id["sql"]["events"] == len(EVENTS)
    assert all(each["events"] and each["seconds"] > 0 for each in by_id.values())


def test_wrong_use(files: Path) -> None:
    """Told before anything is read."""
    assert "--junit is about --expect" in backtest("--junit", "x.xml", code=2).stderr
    found = CliRunner().invoke(app, ["backtest", "-r", "rules.yaml"])
    assert found.exit_code == 3
    assert "name files or folders with --input" in found.stderr
    found = CliRunner().invoke(app, ["backtest", "-i", "logins.avro"])
    assert "there are no rules to run" in found.stderr
    assert "'soon' is no time" in backtest("--from", "soon", code=3).stderr


def test_rules_that_do_not_fit(files: Path) -> None:
    """As the job refuses them, with the place underlined."""
    Path("rules.yaml").write_text(RULE.replace("kind = 'ok'", "kindd = 'ok'"), "utf-8")
    found = backtest(code=4)
    assert "rules.yaml:6:" in found.stderr
    assert "kindd" in found.stderr
