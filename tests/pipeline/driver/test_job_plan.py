"""What a job runs, and what is needed to find out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from service.config import Settings
from service.errors import ConfigurationError
from service.pipeline.driver.job_plan import input_topics, load_rules


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
    with pytest.raises(ConfigurationError, match=r"inputs\.i\.topics: c do not exist"):
        input_topics(settings(tmp_path, {"topics": ["a", "c"]}), ["a"])
    with pytest.raises(ConfigurationError, match="matches none of: b"):
        input_topics(by_pattern, ["b"])


def test_too_many_rules(tmp_path: Path) -> None:
    """The message names folder, number and limit."""
    rule = "id: {0}\nkey: k\nwithin: 1 s\npattern: [{{step: a, where: n = 1}}]\n"
    for name in ("one", "two"):
        (tmp_path / f"{name}.yaml").write_text(rule.format(name), "utf-8")
    inputs: dict[str, object] = {"topics": ["a"]}
    assert len(load_rules(settings(tmp_path, inputs)).enabled) == 2
    with pytest.raises(ConfigurationError, match=r"holds 2 rules; rules\.max_rules allows 1"):
        load_rules(settings(tmp_path, inputs, max_rules=1))


@pytest.mark.parametrize(
    ("module", "without"),
    [
        ("service.pipeline.driver.job_plan", "pyspark"),
        ("service.pipeline.driver.rescale", "service.pipeline.driver.service"),
        ("service.pipeline.driver.state_report", "service.pipeline.driver.service"),
        ("service.cli.explaining", "service.pipeline"),
    ],
)
def test_commands_load_no_service(module: str, without: str) -> None:
    """What `check`, `rescale`, `state` and `explain` import."""
    program = f"import sys, {module}; print({without!r} in sys.modules)"
    asked = [sys.executable, "-c", program]
    assert subprocess.run(asked, check=True, capture_output=True, text=True).stdout == "False\n"
