"""What ``spark-cep state`` says of a real checkpoint."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from spark_cep.cli.exit_codes import ExitCode
from spark_cep.cli.job.state_text import as_json, plans_of
from spark_cep.cli.main import app
from spark_cep.errors import StateError
from spark_cep.pipeline.driver.commands.open_partials import read_open
from spark_cep.pipeline.driver.commands.state_report import read_state
from spark_cep.pipeline.spark import starting
from tests.conftest import ROOT
from tests.e2e.halfway import STATE, Halfway
from tests.e2e.stream import at

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


def test_what_is_held(halfway: Halfway, spark: SparkSession, tmp_path: Path) -> None:
    """Rules, partial matches, waiting events, bytes and the clock are those of the job."""
    copy = halfway.copy(tmp_path)
    report = read_state(copy.settings(), spark=spark)
    assert {rule.id: rule.held.partial_matches for rule in report.rules} == halfway.live
    assert report.total.partial_matches == sum(filter(None, halfway.live.values()))
    newest = halfway.events[halfway.half - 1][2]
    ahead = [event for event in halfway.events[: halfway.half] if event[2] >= newest - 15]
    assert report.watermark == at(newest - 15) - 1
    assert [time for *_, time in report.clock] == [at(newest)]
    # An event that waits for rules by key waits for the rule without key, too.
    relevant = sum(1 for _, name, _ in ahead if name != "x")
    everything = len(ahead)
    assert relevant < report.total.waiting <= relevant + everything
    assert report.next_due is not None
    assert report.next_due > report.watermark
    for rule in report.rules:
        assert rule.held.keys <= report.total.keys
        if rule.held.partial_matches:
            assert rule.held.oldest is not None
            assert rule.held.oldest <= report.watermark < (rule.held.due or 0)
    sizes = [size.bytes for size in report.partitions.values()]
    assert len(sizes) == STATE["state_partitions"]
    assert sum(sizes) == report.total.bytes > 1000
    assert report.buckets[0][2].bytes == max(bucket[2].bytes for bucket in report.buckets)
    # As the page of `watch` has them: each with its key, up to a limit, and once for each batch.
    opened = read_open(copy.settings(), spark, 10_000)
    assert Counter(each.rule.id for _, each in opened.partials) == Counter(
        {rule: live for rule, live in halfway.live.items() if live}
    )
    for key, each in opened.partials:
        of_key = {halfway.events[where.offset][0] for _, where in each.events}
        assert key is None or of_key == {key}
    assert opened.is_all
    assert read_open(copy.settings(), spark, 1, opened) is opened
    some = read_open(copy.settings(), spark, 1)
    assert (len(some.partials), some.is_all) == (1, False)


def test_one_key(
    halfway: Halfway, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The partial matches of a key, each with the events that it has taken, by name of step; and
    ``why --open``, which reads what the key is in alone, shows the same."""
    copy = halfway.copy(tmp_path)
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump(copy.scenario.document(**copy.sections())), "utf-8")
    monkeypatch.setattr(
        starting, "StartingSpark", lambda *_, short: SimpleNamespace(session=lambda: spark)
    )
    settings = copy.settings()
    everything: Counter[str] = Counter()
    for key in ("k0", "k1", "absent"):
        report = read_state(settings, key, spark)
        plans = plans_of(settings, report.position.committed)
        document = json.loads(as_json(report, plans))
        partials = document["partial_matches"]
        assert bool(partials) == (key != "absent")
        for each in partials:
            everything[each["rule"]] += 1
            for event in each["events"]:
                sent = halfway.events[event["offset"]]
                assert sent[:2] == (key, event["step"])
            assert each["began"] < each["deadline"]
            assert each["waits_for"] or each["absence"]
        asked = ["why", "--open", "--key", key, "--config", str(config), "--json"]
        opened = CliRunner().invoke(app, asked)
        assert opened.exit_code == 0, opened.output
        shown = json.loads(opened.stdout)
        assert shown["watermark"] == document["watermark"]
        assert sorted(map(str, shown["partial_matches"])) == sorted(map(str, partials))
    assert everything["abc"] > 0
    asked = ["why", "--open", "--key", "k0", "--config", str(config), "--rule"]
    text = CliRunner().invoke(app, [*asked, "abc"]).stdout
    assert "Open partial matches of key k0\nabc, version 1: began " in text
    wrong = CliRunner().invoke(app, [*asked, "abd"])
    assert wrong.exit_code == ExitCode.CONFIGURATION
    assert "there is no rule `abd`" in wrong.stderr


def test_a_job_may_run_meanwhile(halfway: Halfway, spark: SparkSession, tmp_path: Path) -> None:
    """What is read is the state of a committed batch, and the job goes on."""
    copy = halfway.copy(tmp_path)
    settings = copy.settings()
    before = read_state(settings, spark=spark).position.batch
    copy.scenario.reports.clear()
    with copy.scenario.running(**copy.sections()):
        copy.scenario.wait_for_records(1)
        report = read_state(settings, spark=spark)
        assert report.position.committed is not None
        assert report.position.committed >= before


def test_no_checkpoint(halfway: Halfway, spark: SparkSession, tmp_path: Path) -> None:
    """A place where no job has run is named."""
    copy = halfway.copy(tmp_path)
    copy.checkpoint = tmp_path / "elsewhere"
    with pytest.raises(StateError, match="elsewhere: no batch is committed there"):
        read_state(copy.settings(), spark=spark)
    assert not copy.checkpoint.exists()


def test_the_commands(halfway: Halfway, tmp_path: Path) -> None:
    """``rescale`` and ``state`` as processes: what they print, and their exit codes."""
    copy = halfway.copy(tmp_path)
    document = copy.scenario.document(**copy.sections(spark={"master": "local[2]"}))
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump(document), "utf-8")

    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "spark_cep.cli.main", *arguments, "--config", str(config)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )

    refused = command("rescale", "--partitions", "0")
    assert refused.returncode == 3
    assert "--partitions 0: from 1 to 32768" in refused.stderr
    done = command("rescale", "--partitions", "3")
    assert done.returncode == 0, done.stderr
    assert "2 state partitions before, 3 now" in done.stdout
    assert "set state.state_partitions to 3" in done.stdout
    shown = command("state", "--json")
    assert shown.returncode == 0, shown.stderr
    found = json.loads(shown.stdout)
    assert found["state_partitions"] == len(found["partitions"]) == 3
    assert found["total"]["partial_matches"] == sum(filter(None, halfway.live.values()))
    tables = command("state", "--checkpoint", str(halfway.scenario.folder / "checkpoint"))
    assert tables.returncode == 0, tables.stderr
    for text in ("watermark", "abc", "all-keys", "Largest buckets"):
        assert text in tables.stdout
