"""``spark-cep check``, and what ``spark-cep run`` refuses: exit codes and what is shown."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from service.cli.main import app
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, sequence
from tests.kafka_access import KafkaAccess


def _invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """A folder with one sound rule."""
    folder = tmp_path / "given"
    folder.mkdir()
    (folder / "ab.yaml").write_text(yaml.safe_dump(sequence("ab", "a", "followed_by b")), "utf-8")
    return folder


def test_sound_rules_pass(rules: Path) -> None:
    """Exit code 0 and a summary."""
    result = _invoke("check", rules)
    assert result.exit_code == 0
    assert "1 rule in order" in result.stdout


def test_a_wrong_rule_is_underlined(rules: Path) -> None:
    """Exit code 4; file, line, the place underlined, and what is allowed."""
    text = 'id: bad\nversion: 1\nkey: k\npattern:\n  - step: a\n    where: "rand() > 1"\n'
    (rules / "bad.yaml").write_text(text, "utf-8")
    result = _invoke("check", rules)
    assert result.exit_code == 4
    lines = result.stderr.splitlines()
    place = next(n for n, line in enumerate(lines) if line.startswith("6 | "))
    assert "bad.yaml:6:" in lines[place - 1]
    start = lines[place].index("rand")
    assert lines[place + 1][start:].startswith("^")
    assert not lines[place + 1][:start].strip()


def test_a_missing_folder_is_a_matter_of_configuration(tmp_path: Path) -> None:
    """Exit code 3."""
    result = _invoke("check", tmp_path / "nowhere")
    assert result.exit_code == 3
    assert "no such file or folder" in result.stderr


@pytest.mark.kafka
def test_columns_are_checked_against_the_registry(
    kafka: KafkaAccess, registry: str, tmp_path: Path, rules: Path
) -> None:
    """With ``--config`` a column that no event has is exit code 4, with the nearest name."""
    scenario = Scenario(kafka, registry, None, tmp_path)
    Stream(scenario)
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump(scenario.document()), "utf-8")
    assert _invoke("check", rules, "--config", config).exit_code == 0
    wrong = sequence("wrong", "a")
    wrong["pattern"][0]["where"] = "nane = 'a'"
    (rules / "wrong.yaml").write_text(yaml.safe_dump(wrong), "utf-8")
    result = _invoke("check", rules, "--config", config)
    assert result.exit_code == 4
    assert "nane" in result.stderr
    assert "name" in result.stderr


def test_run_refuses_a_wrong_configuration(tmp_path: Path) -> None:
    """Exit code 3, and all problems at once, the unknown setting with the nearest name."""
    config = tmp_path / "config.yaml"
    config.write_text("kafka:\n  bootstrap_server: here\ntrigger:\n  interval: soon\n", "utf-8")
    result = _invoke("run", "--config", config)
    assert result.exit_code == 3
    assert "bootstrap_servers" in result.stderr
    assert "trigger.interval" in result.stderr
    assert "registry" in result.stderr
