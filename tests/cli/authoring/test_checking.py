"""What ``spark-cep check`` says of rules by themselves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from spark_cep.cli.authoring import checking
from spark_cep.cli.authoring.checking import check_rules
from spark_cep.cli.exit_codes import ExitCode
from spark_cep.cli.main import app
from spark_cep.codecs import formats
from spark_cep.errors import ConfigurationError, SchemaNotFoundError, SparkCepError
from spark_cep.pipeline.driver.kafka.cluster import Cluster
from spark_cep.pipeline.driver.rules import job_plan

STATEMENT = """-- id: r
SELECT * FROM logins MATCH_RECOGNIZE (
  PARTITION BY account MEASURES {measure} AS m PATTERN ({pattern}) {within}
  DEFINE a AS v = 1, b AS v = 2{more}
)"""


def checked(
    folder: Path, pattern: str, within: str = "", more: str = "", measure: str = "a.v"
) -> list[tuple[str, str | None]]:
    """What is said against a rule."""
    file = folder / "r.sql"
    text = STATEMENT.format(pattern=pattern, within=within, more=more, measure=measure)
    file.write_text(text, encoding="utf-8")
    report = check_rules([file], None, ())
    return [(each.message, each.allowed) for each in report.problems]


@pytest.mark.parametrize("pattern", ["a b $", "a x* b"])
def test_what_a_continuous_job_refuses(tmp_path: Path, pattern: str) -> None:
    """It is refused, and told where it can run."""
    ((_, allowed),) = checked(tmp_path, pattern)
    assert allowed is not None
    assert allowed.endswith(
        "or --config of a job whose input ends (trigger.at_end_of_input: decide)"
    )


def test_what_settles_it(tmp_path: Path) -> None:
    """As the job says."""
    assert checked(tmp_path, "a x* b", within="WITHIN INTERVAL '1' HOUR") == []
    assert checked(tmp_path, "a x* b", more=", x AS v = 3") == []


def test_a_condition_that_is_wrong(tmp_path: Path) -> None:
    """It is told, and not taken for none."""
    ((message, _),) = checked(tmp_path, "a x* b", more=", x AS v = ")
    assert "loop" not in message
    assert "takes any row" not in message


LIVE_RULE = """id: r
key: k
within: 1 minute
pattern:
  - {step: a, where: "n = 1"}
"""
REFUSED = "kafka.bootstrap_servers 127.0.0.1:1: the brokers refuse the login"


class Checked:
    """``spark-cep check --config`` with a registry that knows the schemas, or does not."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self._rule, self._config = folder / "r.yaml", folder / "config.yaml"
        self._rule.write_text(LIVE_RULE, "utf-8")
        document = {
            "kafka": {"bootstrap_servers": "127.0.0.1:1"},
            "inputs": {"i": {"topics": ["login"]}},
            "registry": {"url": "http://127.0.0.1:1"},
            "state": {"checkpoint": str(folder / "checkpoint")},
            "rules": {"folder": str(folder)},
        }
        self._config.write_text(json.dumps(document), "utf-8")
        monkeypatch.setattr(checking, "_SECONDS", 0.2)
        monkeypatch.setattr(formats, "record_format", lambda *_: None)
        monkeypatch.setattr(job_plan, "check_rules", lambda *_, **__: ())

    def kafka(self, answer: list[str] | SparkCepError) -> None:
        """Kafka answers so."""

        def topics(_: Cluster) -> list[str]:
            if isinstance(answer, SparkCepError):
                raise answer
            return answer

        self._monkeypatch.setattr(Cluster, "topics", topics)

    def registry_knows_nothing(self) -> None:
        """The registry has no subject."""

        def refused(*_: object) -> None:
            raise SchemaNotFoundError("no subject login-value")

        self._monkeypatch.setattr(formats, "record_format", refused)

    def run(self, *options: str) -> Result:
        """The end of the command."""
        arguments = [str(self._rule), "--config", str(self._config), "--strict", *options]
        return CliRunner().invoke(app, ["check", *arguments])


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checked:
    """A check with settings."""
    return Checked(tmp_path, monkeypatch)


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_broker_that_is_away(check: Checked, form: str) -> None:
    """It is a warning that names the setting, and the exit code stays that of the rules."""
    found = check.run("--format", form)
    assert found.exit_code == 0
    assert "warning: Kafka (kafka.bootstrap_servers 127.0.0.1:1)" in found.stderr
    assert "it was not checked whether the input topics exist" in found.stderr
    assert "warning" not in found.stdout.replace('"warnings": 0', "")


def test_a_broker_that_refuses(check: Checked) -> None:
    """The login, or a certificate: the reason stands in the warning."""
    check.kafka(ConfigurationError(REFUSED))
    found = check.run()
    assert (found.exit_code, f"warning: {REFUSED};" in found.stderr) == (0, True)
    check.registry_knows_nothing()
    found = check.run()
    assert found.exit_code == ExitCode.SCHEMAS
    assert "error: no subject login-value" in found.stderr
    assert REFUSED in found.stderr


def test_a_topic_that_does_not_exist(check: Checked) -> None:
    """A warning where its schema is known, since it may be made later; an error where it is not."""
    check.kafka(["login"])
    assert "warning" not in check.run().stderr
    check.kafka(["logins"])
    found = check.run()
    assert found.exit_code == 0
    missing = "inputs.i.topics: login does not exist on 127.0.0.1:1; did you mean logins?"
    assert f"warning: {missing}" in found.stderr
    check.registry_knows_nothing()
    found = check.run()
    assert found.exit_code == ExitCode.CONFIGURATION
    assert f"error: {missing}" in found.stderr
