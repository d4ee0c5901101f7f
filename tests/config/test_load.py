"""Loading settings: sources and their order, values from elsewhere, and every kind of refusal."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from spark_cep.config import Settings, load
from spark_cep.documents.shapes import FREE_KEY, walk
from spark_cep.errors import ConfigurationError

MINIMAL = """\
kafka:
  bootstrap_servers: localhost:9092
inputs:
  logins: {topics: [logins]}
registry:
  url: http://localhost:8081
state:
  checkpoint: checkpoint
"""


def write(folder: Path, text: str) -> Path:
    """A configuration file with this text."""
    file = folder / "config.yaml"
    file.write_text(text)
    return file


def refusal(folder: Path, text: str, **environ: str) -> str:
    """The message that refuses this configuration, without the lines that it quotes."""
    with pytest.raises(ConfigurationError) as refused:
        load(write(folder, text), environ)
    assert refused.value.__cause__ is None
    return re.sub(r"^\d+ \| .*\n *\^+(\n|\Z)", "", str(refused.value), flags=re.MULTILINE)


def test_minimal_file_takes_defaults(tmp_path: Path) -> None:
    """What is left out has its default."""
    settings = load(write(tmp_path, MINIMAL), {})
    assert settings.time.allowed_disorder == 1_000
    assert settings.state.rocksdb_memory == 512 * 2**20
    assert settings.outputs.topics.all() == (
        "cep.matches",
        "cep.timeouts",
        "cep.match-rows",
        "cep.late",
        "cep.dead-letters",
        "cep.shadow",
    )
    assert settings.trigger.latency == 250


def test_environment_overrides_the_file(tmp_path: Path) -> None:
    """A variable wins over the file and reaches every depth; the file's neighbours stay."""
    settings = load(
        write(tmp_path, MINIMAL + "time: {allowed_disorder: 1 s, max_ahead: 1 h}\n"),
        {
            "SPARK_CEP__TIME__ALLOWED_DISORDER": "2 minutes",
            "SPARK_CEP__TIME__MAX_AHEAD": "null",
            "SPARK_CEP__INPUTS__LOGINS__TOPICS": "a, b",
            "SPARK_CEP__INPUTS__MORE__TOPICS": '["c"]',
            "SPARK_CEP__OUTPUTS__TOPICS__LATE": "late",
            "SPARK_CEP__OUTPUTS__CREATE_TOPICS__ENABLED": "false",
            "SPARK_CEP__STATE": "{state_partitions: 8}",
            "SPARK_CEP__SPARK__CONF": '{"spark.ui.enabled": false}',
            "UNRELATED": "x",
        },
    )
    assert settings.time.allowed_disorder == 120_000
    assert settings.time.max_ahead is None
    assert settings.inputs["logins"].topics == ["a", "b"]
    assert settings.inputs["more"].topics == ["c"]
    assert settings.outputs.topics.late == "late"
    assert settings.outputs.create_topics.enabled is False
    assert settings.state.state_partitions == 8
    assert settings.spark.conf == {"spark.ui.enabled": "false"}


def test_everything_from_the_environment() -> None:
    """No file is needed."""
    settings = load(
        None,
        {
            "SPARK_CEP__KAFKA__BOOTSTRAP_SERVERS": "b:1",
            "SPARK_CEP__INPUTS__A__TOPIC_PATTERN": "in-.*",
            "SPARK_CEP__REGISTRY__URL": "https://r",
            "SPARK_CEP__STATE__CHECKPOINT": "s3a://bucket/job",
        },
    )
    assert settings.inputs["a"].topic_pattern == "in-.*"
    assert settings.state.checkpoint == "s3a://bucket/job"


def test_process_environment_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a mapping the process's own environment counts, and only for load."""
    monkeypatch.setenv("SPARK_CEP__SPARK__APP_NAME", "mine")
    monkeypatch.setenv("SPARK", "{}")
    assert load(write(tmp_path, MINIMAL)).spark.app_name == "mine"
    data: dict[str, Any] = {
        "kafka": {"bootstrap_servers": "b:1"},
        "inputs": {"a": {"topics": ["t"]}},
        "registry": {"url": "http://r"},
        "state": {"checkpoint": "c"},
    }
    assert Settings.model_validate(data).spark.app_name == "spark-cep"


def test_texts_stay_texts(tmp_path: Path) -> None:
    """YAML's guesses about numbers, dates and booleans do not touch text settings."""
    text = MINIMAL.replace("  url:", "  username: off\n  password: 1e3\n  url:")
    settings = load(write(tmp_path, text + "spark: {app_name: 0123}\n"), {})
    assert settings.spark.app_name == "0123"
    registry = settings.registry
    assert registry is not None
    assert registry.username == "off"
    assert registry.password == SecretStr("1e3")


def test_values_from_files_and_variables(tmp_path: Path) -> None:
    """Any single value can be taken from a file or variable, in YAML and in the environment."""
    (tmp_path / "user").write_text("cep\n")
    (tmp_path / "password").write_text("p w\n\n")
    text = MINIMAL + "time: {allowed_disorder: {env: DISORDER}}\nspark:\n  conf: {a: {env: A}}\n"
    settings = load(
        write(tmp_path, text.replace("  url:", "  username: {file: user}\n  url:")),
        {
            "DISORDER": "3 s",
            "A": "hidden",
            "SPARK_CEP__REGISTRY__PASSWORD__FILE": "password",
            "SPARK_CEP__SPARK__APP_NAME__ENV": "A",
        },
    )
    registry = settings.registry
    assert registry is not None
    assert registry.username == "cep"
    assert registry.password == SecretStr("p w\n")
    assert settings.time.allowed_disorder == 3_000
    assert settings.spark.conf == {"a": SecretStr("hidden")}
    assert settings.spark.app_name == "hidden"


def test_relative_paths_start_at_the_file(tmp_path: Path) -> None:
    """Paths, the checkpoint and the default rules folder are relative to the configuration."""
    settings = load(write(tmp_path, MINIMAL), {"SPARK_CEP__SPARK__CLASSES_FOLDER": "classes"})
    assert settings.rules.folder == tmp_path / "rules"
    assert settings.state.checkpoint == str(tmp_path / "checkpoint")
    assert settings.spark.classes_folder == tmp_path / "classes"


def test_all_problems_at_once_with_their_lines(tmp_path: Path) -> None:
    """Each problem names file and line, setting, what was found and what is allowed."""
    message = refusal(
        tmp_path,
        """\
kafka:
  bootstrap_servers: localhost
  securty: {}
inputs:
  logins:
    topics: [logins, "a b"]
    event_tim: ts
registry: {url: 'ftp://x'}
state:
  state_partitions: 0
time:
  allowed_disorder: 10
observability:
  log_level: loud
outputs:
  late_events: some
""",
    )
    file = tmp_path / "config.yaml"
    lines = message.splitlines()
    assert sum(line.startswith(f"{file}:") for line in lines) == 10
    assert (
        f"{file}:2:3: `kafka.bootstrap_servers` cannot be `localhost`\n  help: host:port" in message
    )
    assert (
        f"{file}:3:3: unknown setting `kafka.securty`\n  help: did you mean `security`?" in message
    )
    assert f"{file}:6:22: `inputs.logins.topics.1` cannot be `a b`\n  help: a topic name" in message
    assert (
        f"{file}:7:5: unknown setting `inputs.logins.event_tim`\n  help: did you mean `event_time`?"
    ) in message
    assert f"{file}:8:12: `registry.url` cannot be `ftp://x`\n  help: http://" in message
    assert f"{file}:9:1: `state.checkpoint` is missing\n  help: Folder" in message
    assert (
        f"{file}:10:3: `state.state_partitions` cannot be `0`\n  help: from 1 to 32768" in message
    )
    assert (
        f"{file}:12:3: `time.allowed_disorder`: `10` is not a duration: its unit is missing\n"
        "  help: a number and a unit"
    ) in message
    assert (
        f"{file}:14:3: `observability.log_level` cannot be `loud`\n  help: `debug`, `info`"
    ) in message
    assert (
        f"{file}:16:3: `outputs.late_events` cannot be `some`\n  help: `relevant`, `all` or `drop`"
    ) in message


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        ("SPARK_CEP__TIME__ALLOWED_DISORDR", "did you mean SPARK_CEP__TIME__ALLOWED_DISORDER?"),
        ("SPARK_CEP__KAFKA__SECURTY__PASSWORD", "mean SPARK_CEP__KAFKA__SECURITY__PASSWORD?"),
        ("SPARK_CEP__ZZZ", "unknown setting `zzz`\n  help: settings here: kafka, inputs, outputs"),
        ("SPARK_CEP__TRIGGER__LATENCY__MS", "help: SPARK_CEP__TRIGGER__LATENCY, or"),
        ("SPARK_CEP__SPARK__CONF__X", "help: SPARK_CEP__SPARK__CONF with the whole of it"),
        (
            "SPARK_CEP__SPARK__CONF",
            "expected the node content, but found '<stream end>'\n  help: a YAML",
        ),
        (
            "SPARK_CEP__STATE__STATE_PARTITIONS",
            "`state.state_partitions` must be a whole number, found `{`",
        ),
    ],
)
def test_wrong_variables_are_refused(tmp_path: Path, variable: str, said: str) -> None:
    """An unknown or wrong variable is refused by name, with the nearest name."""
    message = refusal(tmp_path, MINIMAL, **{variable: "{"})
    assert message.count("environment variable ") == 1
    assert message.startswith(f"environment variable {variable}: ")
    assert said in message


@pytest.mark.parametrize(
    ("addition", "said"),
    [
        ("time: {}\ntime: {}\n", ":10:1: the key `time` is given twice, first in line 9"),
        ("time: [1]\n", ":9:1: `time` must be a mapping, found a list"),
        ("? [a]\n: b\n", "9:3: a key must be text"),
        ("time: {a: b\n", "expected ',' or '}', but got '<stream end>'\n  help: a YAML"),
        ("spark: {app_name: {env: NOPE}}\n", "the environment variable NOPE is not set"),
        ("spark: {app_name: {file: nope}}\n", "nope cannot be read: No such file"),
        ("state2: {}\n", "unknown setting `state2`\n  help: did you mean `state`?"),
        ("source: {max_offsets_per_trigger: 0}\n", "cannot be `0`\n  help: 1 or more"),
        ("source: {starting_offsets: 2024-01-01}\n", "a date and time with its zone"),
        ("source: {starting_offsets: '2024-01-01T00:00:00'}\n", "a date and time with its zone"),
        ("source: {starting_offsets: middle}\n", "cannot be `middle`\n  help: `earliest`"),
        ("source: {starting_offsets: {t: {0: -3}}}\n", "t, partition 0: allowed is an offset"),
        ("source: {starting_offsets: {t: 3}}\n", "t: allowed is a map from partitions"),
        ("source: {starting_offsets: {t: {x: 3}}}\n", "t: allowed is a map from partitions"),
        ("source: {starting_offsets: [3]}\n", "help: `earliest`, `latest`"),
        ("outputs: {topics: {late: cep.matches}}\n", "a topic of its own"),
        (
            "outputs: {topics: {late: logins}}\n",
            "`inputs.logins.topics`: logins is an output topic",
        ),
        ("outputs: {create_topics: {replication: 0}}\n", "0 is not a number of copies"),
        ("time: {max_ahead: 0 s}\n", "cannot be `0 s`\n  help: more than 0 ms"),
        (
            "time: {max_ahead: 3}\n",
            "`3` is not a duration: its unit is missing\n  help: a number and a unit",
        ),
        (
            "time: {max_ahead: {a: b}}\n",
            "`time.max_ahead`: a mapping is not a duration\n  help: a number",
        ),
        (
            "time: {max_ahead: 2 eons}\n",
            "`2 eons` is not a duration: its unit is not known\n  help: a number and a unit",
        ),
        ("rules: {max_rules: 1e9}\n", "`rules.max_rules` must be a whole number, found `1e9`"),
        ("rules: {max_rules: 1.5}\n", "must be a whole number, found the number `1.5`"),
        ("rules: {max_rules: !!int x}\n", "this is not a valid int"),
        ("rules: {max_rules: 2000000}\n", "cannot be `2000000`\n  help: from 1 to 100000"),
        ("rules: {max_rules: null}\n", "must be a whole number, found nothing"),
        ("spark: {master: ''}\n", "`spark.master` is empty"),
        ("spark: {master: local(2)}\n", "cannot be `local(2)`\n  help: `local[N]`"),
        ("spark: {master: 'local[0]'}\n", "cannot be `local[0]`\n  help: `local[N]`"),
        ("spark: {app_name: \x07}\n", "the character U+0007 is not allowed in YAML"),
        ("spark: {app_name: {file: config.yaml, env: X}}\n", "must be text, found a mapping"),
        ("spark: {app_name: {file: [x]}}\n", "must be text, found a mapping"),
        ("spark: {app_name: {file: /bin}}\n", "/bin cannot be read: Is a directory"),
        ("trigger: {mode: sometimes}\n", "help: `continuous` or `available_now`"),
        ("observability: {metrics_port: -1}\n", "cannot be `-1`\n  help: from 0 to 65535"),
        ("state: {}\n", "the key `state` is given twice, first in line 7"),
        ("source: {fail_on_data_loss: maybe}\n", "must be `true` or `false`, found `maybe`"),
        ("source: {starting_offsets: 5}\n", "a date and time with its zone"),
        ("spark: {conf: {a: [1]}}\n", "`spark.conf.a` cannot be a list\n  help: a text, number"),
    ],
)
def test_each_kind_of_mistake_is_explained(tmp_path: Path, addition: str, said: str) -> None:
    """Each kind of mistake has a sentence of its own."""
    assert said in refusal(tmp_path, MINIMAL + addition)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("topics: [logins]", "event_time: ts", "exactly one of topics and topic_pattern"),
        ("topics: [logins]", "topics: [a, a]", "a topic is listed twice"),
        ("topics: [logins]", "topics: [a], event_time: a-b", "names with dots between"),
        ("topics: [logins]", "topics: [a], reader_schema: {}", "exactly one of file and subject"),
        ("topics: [logins]", "topics:", "exactly one of topics and topic_pattern"),
        ("topics: [logins]", "topic_pattern: '('", "cannot be read: missing ), unterminated"),
        ("topics: [logins]", "topic_pattern: '*x'", "at character 1\n  help: a regular expression"),
        ("  url:", "  ssl_ca_file: none.pem\n  url:", "must be an existing file"),
        ("  url:", "  ssl_key_file: config.yaml\n  url:", "go together"),
        ("kafka:\n", "kafka:\n  security: {ssl_key_file: config.yaml}\n", "go together"),
        ("logins: {", "My-Input: {", "small letters, digits and single underscores"),
        ("  url:", "  username: a\n  url:", "username and password go together"),
        ("  url:", "  username: 'a:b'\n  password: x\n  url:", "a colon cannot stand"),
    ],
)
def test_contradictions_are_explained(tmp_path: Path, old: str, new: str, said: str) -> None:
    """Settings that do not go together are refused, with the place."""
    message = refusal(tmp_path, MINIMAL.replace(old, new))
    assert said in message
    assert "config.yaml:" in message


def test_secrets_never_show(tmp_path: Path) -> None:
    """A secret is in no repr, no redacted form, no message; where it was read does not matter."""
    secret = "s3cr3t"
    text = MINIMAL.replace(
        "kafka:\n",
        "kafka:\n  security: {protocol: SASL_SSL, sasl_mechanism: PLAIN, username: u, password: "
        f"{secret}}}\n  source_properties: {{ssl.key.password: {secret}}}\n",
    )
    text += f"spark: {{conf: {{spark.my.token: {secret}, x: {{env: X}}}}}}\n"
    settings = load(write(tmp_path, text), {"X": secret})
    shown = [
        repr(settings),
        str(settings),
        settings.model_dump_json(),
        str(vars(settings)),
    ]
    assert not any(secret in one for one in shown)
    assert secret in settings.kafka.reader_config()["sasl.password"]
    wrong = text.replace("http://localhost:8081", f"http://u:{secret}@localhost").replace(
        "spark:", "state2: {password: " + secret + "}\nspark:"
    )
    wrong += "observability: {log_level: {env: X}, metrics_port: {env: X}}\n"
    message = refusal(tmp_path, wrong, X=secret, SPARK_CEP__KAFKA__SECURITY__PASSWRD=secret)
    assert "metrics_port` must be a whole number, found a value that is not shown" in message
    assert secret not in message


@pytest.mark.parametrize(
    "value",
    [
        "*s3cr3t",
        "!s3cr3t",
        "!!int s3cr3t",
        "'s3cr3t",
        "x: s3cr3t",
        "@s3cr3t",
        "'' s3cr3t",
        "{s3cr3t",
    ],
)
def test_a_secret_that_yaml_cannot_read_is_not_shown(tmp_path: Path, value: str) -> None:
    """Neither itself nor its line."""
    text = MINIMAL.replace("  url:", f"  password: {value}\n  url:")
    assert "s3cr3t" not in refusal(tmp_path, text)


def test_json_has_durations_and_sizes_as_text(tmp_path: Path) -> None:
    """Durations and sizes are written as a configuration has them."""
    plain = load(write(tmp_path, MINIMAL), {}).model_dump(mode="json")
    assert plain["time"]["allowed_disorder"] == "1 second"
    assert plain["time"]["advance_when_idle"] is None
    assert plain["state"]["rocksdb_memory"] == "512 MiB"


def test_documents_that_unfold_without_end_are_refused(tmp_path: Path) -> None:
    """Aliases of aliases cannot fill the memory."""
    layers = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"] + [
        f"a{n}: &a{n} [" + ", ".join([f"*a{n - 1}"] * 10) + "]" for n in range(1, 9)
    ]
    assert "more than 50,000 nodes" in refusal(tmp_path, "\n".join(layers))


@pytest.mark.parametrize("text", ["a: &a [*a]\n", "a: " + "[" * 5000])
def test_documents_without_a_floor_are_refused(tmp_path: Path, text: str) -> None:
    """Neither a list that holds itself nor endless nesting ends in a crash."""
    assert "more than 50 levels deep" in refusal(tmp_path, text)
    file = write(tmp_path, MINIMAL)
    with pytest.raises(ConfigurationError, match="more than 50 levels deep"):
        load(file, {"SPARK_CEP__SPARK": text})


def test_odd_files_of_values(tmp_path: Path) -> None:
    """Values from files that are too large or no text are refused."""
    (tmp_path / "large").write_bytes(b"x" * (2 << 20))
    (tmp_path / "odd").write_bytes(b"\xff\xfe")
    for name, said in (("large", "is larger than 1,048,576 bytes"), ("odd", "is not UTF-8 text")):
        assert said in refusal(tmp_path, MINIMAL + f"spark: {{app_name: {{file: {name}}}}}\n")


def test_deeper_variables_add_to_whole_sections(tmp_path: Path) -> None:
    """A section given whole and a setting of it given alone are put together."""
    settings = load(
        write(tmp_path, MINIMAL),
        {
            "SPARK_CEP__SPARK": "{app_name: a, master: b, conf: {x: 1}}",
            "SPARK_CEP__SPARK__MASTER": "c",
            "SPARK_CEP__SPARK__CONF": "{y: 2}",
            "SPARK_CEP__RULES": "{}",
        },
    )
    assert (settings.spark.app_name, settings.spark.master) == ("a", "c")
    assert settings.spark.conf == {"x": "1", "y": "2"}


@pytest.mark.parametrize(("text", "said"), [("", "missing"), ("- a\n", "this is not a mapping")])
def test_files_that_hold_no_settings(tmp_path: Path, text: str, said: str) -> None:
    """An empty file and one that holds a list are refused with what is needed."""
    assert said in refusal(tmp_path, text)


def test_missing_file_is_named(tmp_path: Path) -> None:
    """A configuration file that does not exist is named."""
    with pytest.raises(ConfigurationError, match=r"none\.yaml: the file cannot be read"):
        load(tmp_path / "none.yaml", {})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kafka:\n\tx: 1\n", "config.yaml:2:1: a tab indents this line\n  help: spaces"),
        ("kafka: 'x\n", "config.yaml:1:8: the quote that opens here is not closed\n  help: the"),
        ("--- {}\n--- {}\n", "config.yaml:1:1: there are 2 documents\n  help: one document"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_problem(tmp_path: Path, text: str, said: str) -> None:
    """Nothing is said about what is missing in it."""
    message = refusal(tmp_path, text)
    assert said in message
    assert len(message.splitlines()) == 2
    with pytest.raises(ConfigurationError) as refused:
        load(tmp_path / "none.yaml", {})
    assert len(refused.value.problems) == 1


def test_a_value_of_a_variable_is_located_there(tmp_path: Path) -> None:
    """Not at the line of the file whose value it replaces; what is in neither is at the file."""
    text = MINIMAL.replace("kafka:\n  bootstrap_servers: localhost:9092\n", "")
    message = refusal(
        tmp_path,
        text.replace("[logins]", "[a, 'b c']") + "time:\n  allowed_disorder: 5 seconds\n",
        SPARK_CEP__TIME__ALLOWED_DISORDER="5",
        SPARK_CEP__INPUTS__LOGINS__TOPICS="a, d e",
        SPARK_CEP__STATE="{state_partitions: 0}",
    )
    here = "environment variable SPARK_CEP__"
    assert f"{here}TIME__ALLOWED_DISORDER: `time.allowed_disorder`: `5` is not" in message
    assert f"{here}INPUTS__LOGINS__TOPICS: `inputs.logins.topics.1` cannot be `d e`" in message
    assert f"{here}STATE: `state.state_partitions` cannot be `0`" in message
    assert f"{tmp_path / 'config.yaml'}:1:1: `kafka.bootstrap_servers` is missing" in message


@pytest.mark.parametrize(
    "url",
    [
        "user:p@ss@host",
        "https://user:p@ss@host:8081",
        "http://one,http://user:p/a@s@two",
        "http://p@x",
    ],
)
def test_a_login_in_a_url_is_refused_and_not_shown(tmp_path: Path, url: str) -> None:
    """Whatever characters its password has, and where the scheme is missing."""
    message = refusal(tmp_path, MINIMAL.replace("http://localhost:8081", f"'{url}'"))
    assert "`registry.url` cannot be `" in message
    assert f"**********@{url.rpartition('@')[2]}`" in message
    assert "a URL without credentials" in message
    assert not any(part in message for part in ("user", "p@", "ss@", "p/a"))


@pytest.mark.parametrize("url", ["http://host:port", "http://[::1", "http://host:99999"])
def test_a_url_that_is_none_is_refused(tmp_path: Path, url: str) -> None:
    """At the start, not by the first request."""
    message = refusal(tmp_path, MINIMAL.replace("http://localhost:8081", f"'{url}'"))
    assert f"`registry.url`: `{url}` is not a URL\n  help: http://" in message


def test_a_number_has_a_bounded_number_of_digits(tmp_path: Path) -> None:
    """Python cannot write a larger one into a message."""
    text = MINIMAL + f"observability:\n  metrics_port: 0x{'f' * 5_000}\n"
    assert "this number has 5,002 characters\n" in refusal(tmp_path, text)


@pytest.mark.slow
def test_no_message_has_words_of_pydantic(tmp_path: Path) -> None:
    """For no setting and no odd value; each says what is allowed."""
    paths = [path for path, _, _ in walk(Settings) if FREE_KEY not in path]
    values = ["x y", "-1", "20", "1.5", "true", "[1, []]", "{a: {b: 1}}", "2026-01-01", "null"]
    for path in paths:
        for value in values:
            text = value
            for name in reversed(path):
                text = f"{{{name}: {text}}}"
            with pytest.raises(ConfigurationError) as refused:
                load(write(tmp_path, text), {})
            for problem in refused.value.problems:
                assert "nput should" not in problem.render(), text
                assert problem.allowed or "cannot be `" not in problem.message, text
