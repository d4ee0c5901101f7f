"""``spark-cep check``, and what ``spark-cep run`` refuses: exit codes and what is shown."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from spark_cep.cli.main import app
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, sequence
from tests.kafka_access import KafkaAccess
from tests.rules.stores import SqliteStore


def _invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """A folder with one sound rule."""
    folder = tmp_path / "given"
    folder.mkdir()
    (folder / "ab.yaml").write_text(
        yaml.safe_dump(sequence("ab", "a", "followed_by b", within="1 hour")), "utf-8"
    )
    return folder


def test_sound_rules_pass(rules: Path) -> None:
    """Exit code 0 and a summary, which says what was not checked."""
    result = _invoke("check", rules)
    assert result.exit_code == 0
    assert result.stdout == (
        "1 rule is valid. Columns and types were not checked: give --schema or --config.\n"
    )


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


def test_each_problem_is_an_error_and_they_are_counted(rules: Path) -> None:
    """So is each warning one, and each begins a block of its own."""
    (rules / "bad.yaml").write_text(
        "id: bad\npattern: [{step: a}]\ncolour: red\nsize: 1\n", "utf-8"
    )
    result = _invoke("check", rules)
    starts = [block.split(":")[0] for block in result.stderr.strip().split("\n\n")]
    assert starts == ["error", "error", "2 errors"]
    (rules / "bad.yaml").write_text("id: bad\npattern: [{step: a}]\n", "utf-8")
    result = _invoke("check", rules)
    assert result.stderr.startswith("warning: ")
    assert result.stdout.startswith("2 rules are valid, with 1 warning. ")


def test_an_error_in_a_text_hides_no_error_of_types(rules: Path, tmp_path: Path) -> None:
    """Neither in other rules nor in other parts of the same rule, whose shape may be wrong too."""
    schema = tmp_path / "event.avsc"
    schema.write_text(
        '{"type": "record", "name": "E", "fields": [{"name": "name", "type": "string"}]}', "utf-8"
    )
    (rules / "ab.yaml").write_text(
        "id: ab\nkey: nome\nwithin: 10\npattern:\n"
        "  - {step: a, where: name = 1}\n"
        "  - {step: b, after: nxt, where: name >}\n",
        "utf-8",
    )
    (rules / "other.yaml").write_text(
        "id: other\nkey: name\npattern: [{step: a, where: nume = 'x'}]\n", "utf-8"
    )
    lines = _invoke("check", rules, "--schema", schema).stderr.splitlines()
    places = [line.split(":")[:3] for line in lines if line.startswith("error: ")]
    assert [(Path(place[1].strip()).name, place[2]) for place in places] == [
        ("ab.yaml", "2"),
        ("ab.yaml", "3"),
        ("ab.yaml", "5"),
        ("ab.yaml", "6"),
        ("ab.yaml", "6"),
        ("other.yaml", "3"),
    ]
    assert lines[-1] == "6 errors"


def test_a_column_of_several_types_is_refused(tmp_path: Path) -> None:
    """Rule, step, and the types with the record types and files that they are in."""
    files: list[str | Path] = []
    for name, kind in (("Login", "string"), ("Transfer", "double")):
        fields = [{"name": "amount", "type": kind}]
        files.append(tmp_path / f"{name}.avsc")
        schema = {"type": "record", "name": name, "fields": fields}
        Path(files[-1]).write_text(json.dumps(schema), "utf-8")
    rule = tmp_path / "rule.yaml"
    rule.write_text("id: large\nkey: '1'\npattern:\n  - {step: a, where: amount > 1000}\n", "utf-8")
    result = _invoke("check", rule, "--schema", files[0], "--schema", files[1])
    assert result.exit_code == 4
    assert (
        "[rule large] [step a] column amount is STRING in Login"
        f" ({files[0]}), DOUBLE in Transfer ({files[1]})"
    ) in result.stderr


@pytest.mark.parametrize("command", ["check", "explain"])
def test_a_symbol_that_an_enum_does_not_have_is_warned_about(command: str, tmp_path: Path) -> None:
    """With the nearest one; the rule is valid."""
    kind = {"type": "enum", "name": "Kind", "symbols": ["SEPA", "SWIFT"]}
    fields = [{"name": "kind", "type": kind}, {"name": "user", "type": "string"}]
    schema = tmp_path / "event.avsc"
    schema.write_text(json.dumps({"type": "record", "name": "E", "fields": fields}), "utf-8")
    rule = tmp_path / "rule.yaml"
    rule.write_text("id: r\nkey: user\npattern: [{step: a, where: kind = 'SPO'}]\n", "utf-8")
    result = _invoke(command, rule, "--schema", schema)
    assert result.exit_code == 0
    shown = result.stdout + result.stderr
    assert "[rule r] [step a] 'SPO' is no symbol of the enum kind" in shown
    assert "symbols here: SEPA, SWIFT" in shown
    if command == "check":
        assert result.stderr.startswith("warning: ")
        assert result.stdout.startswith("1 rule is valid, with 1 warning.")


@pytest.mark.parametrize("command", [["check"], ["explain"], ["explain", "--format", "plan"]])
def test_a_rule_moves_no_cursor(command: list[str], tmp_path: Path) -> None:
    """Not by its id, a step's name, a key or a text in a condition; the escape is shown."""
    hostile = '"\\e[2J\\u202e"'
    for number, text in enumerate(
        (
            f"id: {hostile}\nkey: k\npattern: [{{step: a}}]\n",
            f"id: r\nkey: k\npattern: [{{step: {hostile}}}]\n",
            f"id: r\nkey: k\n{hostile}: 1\npattern: [{{step: a}}]\n",
            f"id: r\nkey: k\npattern: [{{step: a, of_type: {hostile}, where: x = 1}}]\n",
            "id: r\nkey: k\npattern: [{step: a, where: \"x = '\\e[2J'\"}]\n",
        )
    ):
        rule = tmp_path / f"{number}.yaml"
        rule.write_text(text, "utf-8")
        result = _invoke(command[0], rule, *command[1:])
        shown = result.stdout + result.stderr
        assert all(line.isprintable() for line in shown.splitlines()), shown
        assert result.exit_code == (4 if number < 3 else 0)
        assert "[2J" in shown or command == ["check"]


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


@pytest.mark.kafka
def test_doctor_and_check_name_a_mistyped_topic(
    kafka: KafkaAccess, registry: str, tmp_path: Path, rules: Path
) -> None:
    """``doctor`` tries everything and tells of each; the topic's nearest name is given."""
    scenario = Scenario(kafka, registry, None, tmp_path)
    topic = Stream(scenario).topic
    config = tmp_path / "config.yaml"
    document = scenario.document(rules={"folder": str(rules)})
    config.write_text(yaml.safe_dump(document), "utf-8")
    result = _invoke("doctor", "--config", config)
    assert result.exit_code == 0, result.output
    said = result.stdout.splitlines()
    # Memory and disk are those of the machine that runs the tests.
    of_machine = ("memory", "compiled code", "disk")
    tried = {line[8:].partition(":")[0]: line[:8] for line in said}
    assert len(tried) == 16
    doubted = [what for what, state in tried.items() if state != "ok      "]
    assert all(what.startswith(of_machine) for what in doubted), said
    assert f"ok      inputs: {topic}" in said
    assert "ok      Kafka's version: 4.1, or a newer one with the same requests" in said
    assert "ok      clock: no record to compare it with" in said
    mistyped = topic.replace("-", "_", 1) + "s"
    config.write_text(yaml.safe_dump(document).replace(topic, mistyped), "utf-8")
    for command in (["doctor"], ["check", str(rules)]):
        result = _invoke(*command, "--config", config)
        assert result.exit_code == 3, result.output
        assert f"topics: {mistyped} does not exist on" in result.output
        assert f"did you mean {topic}?" in result.output


@pytest.mark.kafka
def test_rules_of_the_settings(kafka: KafkaAccess, registry: str, tmp_path: Path) -> None:
    """Without a file or folder those of the source that the settings name: each problem has the
    place that it has there. Without settings there is nothing to check."""
    scenario = Scenario(kafka, registry, None, tmp_path)
    Stream(scenario)
    table = SqliteStore(tmp_path / "rules.db")
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump(scenario.document(rules=table.given)), "utf-8")
    table.put("ab", yaml.safe_dump(sequence("ab", "a")))
    result = _invoke("check", "--config", config)
    assert (result.exit_code, result.stdout[:15]) == (0, "1 rule is valid")
    table.put("bad", "colour: red")
    result = _invoke("check", "--config", config)
    assert result.exit_code == 4
    assert "error: rules/bad/1:1:1: [rule bad] unknown key `colour`" in result.stderr
    table.away()
    result = _invoke("check", "--config", config)
    assert result.exit_code == 4
    assert "the rules cannot be read: unable to open database file" in result.stderr
    result = _invoke("check")
    assert (result.exit_code, "there are no rules to check" in result.stderr) == (3, True)


def test_run_refuses_a_wrong_configuration(tmp_path: Path) -> None:
    """Exit code 3, and all problems at once, the unknown setting with the nearest name."""
    config = tmp_path / "config.yaml"
    config.write_text("kafka:\n  bootstrap_server: here\ntrigger:\n  latency: soon\n", "utf-8")
    # A process of its own: it takes signals, and puts off the collection of garbage.
    command = [sys.executable, "-m", "spark_cep.cli.main", "run", "--config", str(config)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 3
    assert "bootstrap_servers" in result.stdout
    assert "trigger.latency" in result.stdout
    assert "inputs" in result.stdout


@pytest.mark.kafka
def test_init_from_a_topic(kafka: KafkaAccess, registry: str, tmp_path: Path) -> None:
    """What it writes passes at once, and the rule finds its match in the topic; of a topic without
    records there is nothing to write."""
    scenario = Scenario(kafka, registry, None, tmp_path)
    stream = Stream(scenario)
    places = ("--bootstrap-servers", kafka.bootstrap, "--registry", registry)
    job = tmp_path / "job"
    result = _invoke("init", job, "--topic", stream.topic, *places)
    assert result.exit_code == 3, result.output
    assert not job.exists()
    stream.send(*((f"k{n % 2}", "ab"[n // 2 % 2], n) for n in range(8)))
    result = _invoke("init", job, "--topic", stream.topic, *places)
    assert result.exit_code == 0, result.output
    config = job / "config.yaml"
    settings = yaml.safe_load(config.read_text("utf-8"))
    (source,) = settings["inputs"].values()
    assert (source["topics"], source["event_time"]) == ([stream.topic], "ts")
    assert not (job / "compose.yaml").exists()
    for words in (
        ("check", "--config", config, "--strict"),
        ("test", job / "rules"),
    ):
        result = _invoke(*words)
        assert result.exit_code == 0, result.output
    result = _invoke("backtest", "--config", config, "--json")
    assert json.loads(result.stdout)["rules"][0]["matches"] >= 2
