"""What the repository offers for CI and for commits: action.yml and .pre-commit-hooks.yaml run what
they say."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
SCHEMA = (
    """{"type": "record", "name": "Login", "fields": [{"name": "user_id", "type": "string"}]}"""
)
RULE = "id: {}\nkey: user_id\npattern: [{{step: a, where: {}}}]\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository with rules, and the command as pip installs it."""
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "spark-cep"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m spark_cep.cli.main "$@"\n', "utf-8")
    command.chmod(0o755)
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "good.yaml").write_text(RULE.format("good", "user_id = 'a'"), "utf-8")
    (tmp_path / "login.avsc").write_text(SCHEMA, "utf-8")
    return tmp_path


def run(folder: Path, *command: str, **given: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the repository."""
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        command, cwd=folder, env={**os.environ, "PATH": path, **given}, check=False,
        capture_output=True, encoding="utf-8",
    )  # fmt: skip


def checked(folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run the step of the action, with its inputs or their defaults."""
    given = {name: inputs.get(name, each["default"]) for name, each in ACTION["inputs"].items()}
    (step,) = (step for step in ACTION["runs"]["steps"] if step.get("name") == "Check")
    assert step["shell"] == "bash"
    environment = {
        name: given[value.removeprefix("${{ inputs.").removesuffix(" }}")]
        for name, value in step["env"].items()
    }
    # As GitHub runs it.
    return run(
        folder, "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"], **environment
    )


@pytest.mark.slow
def test_the_action(folder: Path) -> None:
    """Annotations of lines, and the exit code of the command."""
    warned = folder / "rules" / "warned.yaml"
    warned.write_text(RULE.format("warned", "user_id = NULL"), "utf-8")
    done = checked(folder)
    assert done.returncode == 0
    (line,) = done.stdout.splitlines()
    assert line.startswith("::warning file=rules/warned.yaml,line=3,col=28,endColumn=41,")
    assert checked(folder, strict="true").returncode == 4
    # Several paths, and schemas of the events.
    warned.write_text(RULE.format("warned", "amount > 1"), "utf-8")
    done = checked(folder, paths="rules/good.yaml rules/warned.yaml", schemas="login.avsc")
    assert done.returncode == 4
    (line,) = done.stdout.splitlines()
    assert line.startswith("::error file=rules/warned.yaml,line=3,")


def test_the_action_installs_this_package() -> None:
    """From the folder of the action, with a Python that it runs on."""
    (step,) = (step for step in ACTION["runs"]["steps"] if step.get("name") == "Install")
    assert shlex.split(step["run"])[-1] == "$GITHUB_ACTION_PATH"
    assert (ROOT / "pyproject.toml").exists()
    least = ACTION["inputs"]["python-version"]["default"]
    assert tuple(map(int, least.split("."))) >= (3, 11)


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_what_the_hooks_leave_alone(hook: dict[str, Any]) -> None:
    """Test cases and schemas beside the rules."""
    assert re.search(hook["exclude"], "rules/turn.cases.yaml")
    assert re.search(hook["exclude"], "rules/turn.cases.yml")
    assert not re.search(hook["exclude"], "rules/turn.yaml")
    assert not re.search(hook["exclude"], "my.cases.d/turn.yaml")
    # Names of kinds of files, of which `avsc` and `proto` have others.
    assert set(hook["types_or"]) <= {"yaml", "json", "sql"}


@pytest.mark.slow
def test_the_hook(folder: Path) -> None:
    """It is given the files that are committed."""
    (hook,) = (hook for hook in HOOKS if hook["id"] == "spark-cep-check")
    command = shlex.split(hook["entry"])
    bad = folder / "rules" / "bad.sql"
    bad.write_text("-- id: bad\nSELECT", "utf-8")
    assert run(folder, *command, "rules/good.yaml").returncode == 0
    done = run(folder, *command, "rules/good.yaml", "rules/bad.sql")
    assert done.returncode == 4
    assert "rules/bad.sql:" in done.stderr
    # A repository's own `exclude` takes the place of the hook's.
    (folder / "rules" / "good.cases.yaml").write_text("cases: []\n", "utf-8")
    assert run(folder, *command, "rules/good.yaml", "rules/good.cases.yaml").returncode == 0
