"""``spark-cep config``: every setting with the place where it was given, and mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from spark_cep.cli.main import app

SETTINGS = """kafka:
  bootstrap_servers: b:9092
  security: {protocol: SASL_PLAINTEXT, sasl_mechanism: PLAIN, username: u, password: hunter2}
inputs: {logins: {topics: [logins]}}
registry:
  url: {env: REGISTRY}
state: {checkpoint: checkpoint}
spark: {conf: {some.token: hunter3, spark.ui.enabled: true}}
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Settings with secrets, a value from elsewhere, and one of the environment."""
    monkeypatch.setenv("REGISTRY", "http://hidden-host:8081")
    monkeypatch.setenv("SPARK_CEP__TIME__MAX_AHEAD", "120 minutes")
    file = tmp_path / "config.yaml"
    file.write_text(SETTINGS, "utf-8")
    return file


def invoke(*words: str | Path) -> Result:
    """Run the command."""
    return CliRunner().invoke(app, ["config", *map(str, words)])


def test_each_setting_has_its_place(config: Path) -> None:
    """Line of the file, variable, default; durations as they are written, paths as they are
    used."""
    result = invoke("show", "--config", config, "--json")
    assert result.exit_code == 0, result.output
    found = {each.pop("setting"): each for each in json.loads(result.stdout)}
    file = str(config)
    assert found["kafka.bootstrap_servers"] == {
        "value": "b:9092", "given": True, "source": file, "line": 2,
    }  # fmt: skip
    assert found["inputs.logins.topics"] == {
        "value": ["logins"], "given": True, "source": file, "line": 4,
    }  # fmt: skip
    assert found["time.max_ahead"] == {
        "value": "2 hours", "given": True,
        "source": "environment variable SPARK_CEP__TIME__MAX_AHEAD", "line": None,
    }  # fmt: skip
    assert found["time.allowed_disorder"] == {
        "value": "1 second", "given": False, "source": "default", "line": None,
    }  # fmt: skip
    assert found["state.checkpoint"]["value"] == str(config.parent / "checkpoint")
    assert found["spark.conf.spark.ui.enabled"]["value"] == "true"


def test_secrets_are_masked(config: Path) -> None:
    """By type and by name, and what came from elsewhere, in both forms."""
    for form in ([], ["--json"]):
        result = invoke("show", "--config", config, *form)
        assert "spark.conf.some.token" in result.stdout
        for secret in ("hunter2", "hunter3", "hidden-host"):
            assert secret not in result.stdout


def test_part_of_it(config: Path) -> None:
    """One section, one setting, those that are given; the nearest of what there is not."""
    lines = invoke("show", "--config", config, "time", "--given").stdout.splitlines()
    assert [line.split()[:3] for line in lines] == [["time.max_ahead", "2", "hours"]]
    (line,) = invoke("show", "--config", config, "time.allowed_disorder").stdout.splitlines()
    assert line.split() == ["time.allowed_disorder", "1", "second", "default"]
    result = invoke("show", "--config", config, "time.max_ahed")
    assert result.exit_code == 3
    assert "did you mean `time.max_ahead`? settings here: time.allowed_disorder" in result.stderr


def test_check(config: Path) -> None:
    """Counts where all is right; each mistake with its line underlined, also for programs."""
    result = invoke("check", "--config", config)
    assert result.exit_code == 0
    assert ": 11 settings are given and valid; " in result.stdout
    assert "matches wait for 1 second of disorder (time.allowed_disorder)" in result.stdout
    config.write_text(SETTINGS + "time: {allowed_disorder: 5}\n", "utf-8")
    result = invoke("check", "--config", config)
    assert result.exit_code == 3
    assert result.stderr.splitlines()[1:3] == [
        "9 | time: {allowed_disorder: 5}",
        "           ^^^^^^^^^^^^^^^^",
    ]
    result = invoke("check", "--config", config, "--format", "json")
    assert result.exit_code == 3
    (problem,) = json.loads(result.stdout)["results"]
    assert (problem["line"], problem["level"]) == (9, "error")
