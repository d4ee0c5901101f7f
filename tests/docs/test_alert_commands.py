"""The commands of each alert in docs/operations/alerts.md name what there is: commands with
their options, pages, metrics, events of the log."""

from __future__ import annotations

import re
import shlex

import pytest
from typer.testing import CliRunner

from spark_cep.cli.main import app
from spark_cep.config import Observability, Settings
from spark_cep.observability import metric_names
from tests.chart.files import alerts
from tests.docs.logs_page import events
from tests.docs.operations_page import commands_of_alerts

METRICS = {
    value.name for value in vars(metric_names).values() if isinstance(value, metric_names.Metric)
}
LINES = sorted(
    {
        line
        for blocks in commands_of_alerts().values()
        for block in blocks
        for line in block.splitlines()
    }
)


def test_each_alert_has_both_forms() -> None:
    """A block for a machine, and one for Kubernetes."""
    given = commands_of_alerts()
    assert list(given) == [rule["alert"] for rule in alerts()]
    for alert, blocks in given.items():
        assert len(blocks) == 2, alert
        machine, cluster = (block.splitlines() for block in blocks)
        assert machine, alert
        assert not any(line.startswith(("kubectl ", "helm ")) for line in machine), alert
        assert all(line.startswith(("kubectl ", "helm ")) for line in cluster), alert


@pytest.mark.parametrize("line", LINES)
def test_commands_name_what_there_is(line: str) -> None:
    """In either form."""
    program, *words = shlex.split(line.partition(" | ")[0])
    if program.startswith("SPARK_CEP__"):
        name, _, value = program.partition("=")
        section, setting = name.lower().split("__")[1:]
        settings = Settings.model_fields[section].annotation
        assert settings is not None
        assert getattr(settings.model_validate({setting: value}), setting)
        program, *words = words
    pattern = re.search(r"grep (?:-E )?'(.+?)'", line)
    if pattern is not None and "metrics" in line:
        prefix, _, names = pattern[1].replace("_(sum|count)", "").partition("(")
        named = {prefix[1:] + name.removesuffix("\\{") for name in names.rstrip(")").split("|")}
        assert named <= METRICS
    elif pattern is not None:
        (names,) = re.findall(r'"event": "\(?([a-z_|]+)\)?"', pattern[1])
        assert set(names.split("|")) <= events().keys()
    if program == "curl":
        default = Observability().pages_url
        assert words == ["--silent", f"{default}/{words[-1].rpartition('/')[2]}"]
    if program == "spark-cep":
        command = words[:2] if words[0] == "rules" else words[:1]
        usage = CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": "200"})
        assert usage.exit_code == 0
        for option in (word for word in words if word.startswith("--")):
            assert option in usage.output
