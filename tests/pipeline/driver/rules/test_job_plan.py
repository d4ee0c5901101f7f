"""What a job runs, and what is needed to find out."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spark_cep.codecs.formats import record_format
from spark_cep.codecs.registry.registry import Registry
from spark_cep.codecs.registry.resolved_schemas import ResolvedSchemas
from spark_cep.codecs.registry.schema_resolution import resolve_schemas
from spark_cep.config import Settings, load
from spark_cep.errors import ConfigurationError, Problem, RuleSetError
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pipeline.driver.rules.job_plan import (
    check_rules,
    input_topics,
    problems_of,
    spelled_out,
    within_limit,
)
from spark_cep.rules.rule_set import RuleSet, assemble
from spark_cep.rules.sources.folder import FolderSource, read_files, read_rules
from tests.codecs.registry.test_resolved_schemas import FakeRegistry


def settings(folder: Path, topics: dict[str, object], **rules: object) -> Settings:
    """Of one input ``i``."""
    return Settings.model_validate(
        {
            "kafka": {"bootstrap_servers": "localhost:9092"},
            "inputs": {"i": topics},
            "registry": {"url": "http://localhost"},
            "state": {"checkpoint": str(folder / "checkpoint")},
            "rules": {"folder": str(folder), **rules},
        }
    )


def test_topics_of_inputs(tmp_path: Path) -> None:
    """By name or by pattern, each once; one that does not exist is named."""
    assert input_topics(settings(tmp_path, {"topics": ["a", "b"]}), ["b", "a"]) == ["a", "b"]
    by_pattern = settings(tmp_path, {"topic_pattern": "a.*"})
    assert input_topics(by_pattern, ["aa", "b", "ab"]) == ["aa", "ab"]
    with pytest.raises(ConfigurationError, match=r"inputs\.i\.topics: c does not exist"):
        input_topics(settings(tmp_path, {"topics": ["a", "c"]}), ["a"])
    with pytest.raises(ConfigurationError, match=r"mean payments\? there are: log, payments"):
        input_topics(settings(tmp_path, {"topics": ["paymnets"]}), ["log", "payments"])
    with pytest.raises(ConfigurationError, match="matches none of: b"):
        input_topics(by_pattern, ["b"])


def test_settings_without_registry(tmp_path: Path) -> None:
    """They are settings; the format of the records says that it needs one, and where to set it."""
    file = tmp_path / "config.yaml"
    file.write_text(
        "kafka: {bootstrap_servers: 'localhost:9092'}\ninputs: {i: {topics: [a]}}\n"
        "state: {checkpoint: checkpoint}\n"
    )
    given = load(file, {})
    with Registry.opened(given.registry) as registry:
        assert registry is None
        with pytest.raises(
            ConfigurationError,
            match=r"registry\.url is not set: records of inputs\.i are Avro with",
        ):
            record_format(given, registry, ["a"])


def test_too_many_rules(tmp_path: Path) -> None:
    """The message names folder, number and limit."""
    rule = "id: {0}\nkey: k\nwithin: 1 s\npattern: [{{step: a, where: n = 1}}]\n"
    for name in ("one", "two"):
        (tmp_path / f"{name}.yaml").write_text(rule.format(name), "utf-8")
    inputs: dict[str, object] = {"topics": ["a"]}
    rules, source = read_rules(tmp_path), FolderSource(tmp_path)
    assert within_limit(rules, settings(tmp_path, inputs), source) is rules
    with pytest.raises(ConfigurationError, match=r"holds 2 rules; rules\.max_rules allows 1"):
        within_limit(rules, settings(tmp_path, inputs, max_rules=1), source)


def warnings(
    folder: Path, rule: str, *schemas: dict[str, Any], of_inputs: bool
) -> tuple[Problem, ...]:
    """Check a job of one rule; the schemas are of an input each, or all of input ``i``."""
    (folder / "rule.yaml").write_text(rule, "utf-8")
    topics = [f"t{number}" for number in range(len(schemas))]
    given = settings(folder, {"topics": topics})
    if of_inputs:
        several = [settings(folder, {"topics": [topic]}).inputs["i"] for topic in topics]
        inputs = {f"i{number}": each for number, each in enumerate(several)}
        given = given.model_copy(update={"inputs": inputs})
    subjects = {f"{topic}_value": [number] for number, topic in enumerate(topics)}
    registry: Any = FakeRegistry(dict(enumerate(schemas)), **subjects)
    return check_rules(read_rules(folder), resolve_schemas(given, given.inputs, registry, topics))


def record(name: str, **fields: Any) -> dict[str, Any]:
    """A record with these fields."""
    listed = [{"name": field, "type": kind} for field, kind in fields.items()]
    return {"type": "record", "name": name, "namespace": "bank", "fields": listed}


AMOUNT = "{{id: large, events: {events}, key: user, pattern: [{{step: a, where: amount > 1000}}]}}"
LOGIN = record("Login", user="string", amount="string")
TRANSFER = record("Transfer", user="string", amount="double")


@pytest.mark.parametrize("other", ["Login", "Transfer"])
def test_a_column_of_several_types_is_refused(tmp_path: Path, other: str) -> None:
    """With the rule and its step, both inputs and both types; also where the records have one
    name. A rule on one of the inputs is not."""
    schemas = LOGIN, {**TRANSFER, "name": other}
    with pytest.raises(RuleSetError) as caught:
        warnings(tmp_path, AMOUNT.format(events="[i0, i1]"), *schemas, of_inputs=True)
    (problem,) = caught.value.problems
    assert (problem.rule, problem.step, problem.message) == (
        "large", "a",
        f"column amount is STRING in bank.Login (input i0), DOUBLE in bank.{other} (input i1)",
    )  # fmt: skip
    warnings(tmp_path, AMOUNT.format(events="i1"), *schemas, of_inputs=True)


def test_a_symbol_that_an_enum_does_not_have_is_warned_about(tmp_path: Path) -> None:
    """The job runs the rule."""
    kind = {"type": "enum", "name": "bank.Kind", "symbols": ["SEPA", "SWIFT"]}
    rule = AMOUNT.format(events="i").replace("amount > 1000", "kind = 'SPO'")
    transfer = record("Transfer", user="string", kind=kind)
    found = warnings(tmp_path, rule, transfer, of_inputs=False)
    assert [(each.rule, each.step, each.message) for each in found] == [
        ("large", "a", "'SPO' is no symbol of the enum kind")
    ]


def test_several_types_in_one_input_are_refused(tmp_path: Path) -> None:
    """Records of two topics that one input reads."""
    with pytest.raises(RuleSetError, match=r"STRING in bank.Login \(input i\), DOUBLE in bank.Tr"):
        warnings(tmp_path, AMOUNT.format(events="i"), LOGIN, TRANSFER, of_inputs=False)


@pytest.mark.parametrize(
    ("module", "without"),
    [
        ("spark_cep.pipeline.driver.rules.job_plan", "pyspark"),
        ("spark_cep.pipeline.driver.commands.rescale", "spark_cep.pipeline.driver.service"),
        ("spark_cep.pipeline.driver.commands.state_report", "spark_cep.pipeline.driver.service"),
        ("spark_cep.cli.authoring.explaining", "spark_cep.pipeline"),
        ("spark_cep.cli.rules.commands", "spark_cep.pipeline"),
        ("spark_cep.cli.rules.text", "spark_cep.pipeline"),
        ("spark_cep.watch.pages", "spark_cep.pipeline"),
        ("spark_cep.cli.rules.wait", "spark_cep.pipeline"),
        ("spark_cep.pipeline.driver.commands.rule_history", "pyspark"),
    ],
)
@pytest.mark.slow
def test_commands_load_no_service(module: str, without: str) -> None:
    """What `check`, `rescale`, `state`, `explain` and `rules` import."""
    program = f"import sys, {module}; print({without!r} in sys.modules)"
    asked = [sys.executable, "-c", program]
    assert subprocess.run(asked, check=True, capture_output=True, text=True).stdout == "False\n"


TICK = record("Tick", symbol="string", price="double", ts="long")
STATEMENT = """id: ticks
sql: |
  SELECT * FROM {source} MATCH_RECOGNIZE (
    PARTITION BY symbol ORDER BY {order}
    ALL ROWS PER MATCH
    PATTERN (a b)
    DEFINE b AS Price > 1
  )
"""


def of_ticks(folder: Path, schema: dict[str, Any] = TICK, **source: object) -> ResolvedSchemas:
    """The schemas of a job whose one input is ``ticks``."""
    given = settings(folder, {"topics": ["t"], "event_time": "ts", **source})
    given = given.model_copy(update={"inputs": {"ticks": given.inputs["i"]}})
    registry: Any = FakeRegistry({1: schema}, t_value=[1])
    return resolve_schemas(given, given.inputs, registry, ["t"])


def told(schemas: ResolvedSchemas, statement: str) -> list[tuple[str, int, str]]:
    """What of a rule does not fit the schemas, with line and help."""
    (loaded,) = load_rules(statement, "ticks.yaml")
    return [
        (each.message, 0 if each.span is None else each.span.line, each.allowed or "")
        for each in problems_of(loaded, schemas)
    ]


def test_inputs_of_statements(tmp_path: Path) -> None:
    """FROM names an input of one record type, ORDER BY its event time."""
    schemas = of_ticks(tmp_path)
    assert told(schemas, STATEMENT.format(source="ticks", order="TS")) == []
    assert told(schemas, STATEMENT.format(source="tick", order="ts")) == [
        ("there is no input `tick`", 3, "did you mean `ticks`? inputs here: ticks")
    ]
    assert told(schemas, STATEMENT.format(source="ticks", order="price")) == [
        ("rows come in the order of event time", 4, "ORDER BY ts")
    ]
    of_record = of_ticks(tmp_path, event_time="kafka_timestamp")
    (found,) = told(of_record, STATEMENT.format(source="ticks", order="ts"))
    assert found[:2] == (
        "rows come in the order of event time, the time of their Kafka record",
        4,
    )


def test_a_job_with_a_statement(tmp_path: Path) -> None:
    """It is compiled with the columns of its input; what does not fit is told with its file."""
    (tmp_path / "a.yaml").write_text(STATEMENT.format(source="ticks", order="ts"), "utf-8")
    (tmp_path / "b.sql").write_text(f"-- id: b\n{_statement('tick')}", "utf-8")
    schemas = of_ticks(tmp_path)
    rules = read_rules(tmp_path)
    with pytest.raises(RuleSetError) as caught:
        check_rules(rules, schemas)
    (problem,) = caught.value.problems
    assert (problem.source, problem.rule) == (str(tmp_path / "b.sql"), "b")
    assert problem.message == "there is no input `tick`"
    (tmp_path / "b.sql").write_text(f"-- id: b\n{_statement('ticks')}", "utf-8")
    assert check_rules(read_rules(tmp_path), schemas) == ()


def _statement(source: str) -> str:
    text = STATEMENT.partition("sql: |\n")[2]
    return textwrap.dedent(text.format(source=source, order="ts"))


def test_a_statement_reads_rows_of_one_type(tmp_path: Path) -> None:
    """An input with several is refused by their names."""
    schemas = of_ticks(tmp_path)
    other = replace(schemas.types[0], number=1, name="bank.Quote")
    schemas = replace(schemas, types=(*schemas.types, other))
    assert told(schemas, STATEMENT.format(source="ticks", order="ts")) == [
        (
            "the input `ticks` has events of several record types: bank.Tick, bank.Quote",
            3,
            "an input whose rows are of one: inputs.ticks.record names it",
        )
    ]


def test_statements_are_spelled_out(tmp_path: Path) -> None:
    """A batch's rules say all that they put out; rules with steps, and rules that do not fit, stay
    as they are."""
    schemas = of_ticks(tmp_path)
    (tmp_path / "a.yaml").write_text(STATEMENT.format(source="ticks", order="ts"), "utf-8")
    (tmp_path / "b.yaml").write_text(STATEMENT.format(source="others", order="ts"), "utf-8")
    (tmp_path / "c.yaml").write_text("id: c\nkey: k\npattern: [{step: a, where: n = 1}]", "utf-8")
    files = read_files(tmp_path)
    found, *others = spelled_out(files, schemas, RuleSet())
    assert "SELECT symbol, ts, price FROM ticks" in found.loaded[0].text
    assert "DEFINE b AS price > 1" in found.loaded[0].text
    assert others == files[1:]
    assert spelled_out([found], schemas, RuleSet()) == [found]


def test_a_version_keeps_its_columns(tmp_path: Path) -> None:
    """A column that the schema has got since is for the next version; one that is gone is a
    change."""
    (tmp_path / "a.yaml").write_text(STATEMENT.format(source="ticks", order="ts"), "utf-8")
    files = read_files(tmp_path)
    running = assemble(spelled_out(files, of_ticks(tmp_path), RuleSet())[0].loaded)
    more = record("Tick", first="int", symbol="string", price="double", ts="long", size="int")
    less = record("Tick", symbol="string", Price="double", ts="long")
    (same,) = spelled_out(files, of_ticks(tmp_path, more), running)[0].loaded
    assert same.text == running.loaded[0].text
    assert same.rule == running.rules[0]
    (other,) = spelled_out(files, of_ticks(tmp_path, less), running)[0].loaded
    assert "SELECT symbol, ts, Price FROM" in other.text
    (tmp_path / "a.yaml").write_text(files[0].loaded[0].text.replace("version: 1", "version: 2"))
    (newer,) = spelled_out(read_files(tmp_path), of_ticks(tmp_path, more), running)[0].loaded
    assert "SELECT symbol, ts, `first`, price, size FROM" in newer.text
