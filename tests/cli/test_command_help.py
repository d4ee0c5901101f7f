"""The help of commands: groups, examples, common options, completion, nearest names."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from spark_cep.cli.command_help import HELP
from spark_cep.cli.main import app
from spark_cep.cli.terminal import Verbosity, verbosity

ROOT: Any = typer.main.get_command(app)


def commands(group: Any = ROOT, words: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """All commands that do something, by their words."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*words, name))
        else:
            yield " ".join((*words, name)), command


ALL = dict(commands())


@pytest.mark.parametrize("words", ALL)
def test_each_command(words: str) -> None:
    """It has a group, an example that its own parser takes, and the common options."""
    command = ALL[words]
    example = HELP[words].example
    assert command.epilog == f"Example: {example}".replace("[", r"\[")
    program, *given = shlex.split(example)
    assert program == "spark-cep"
    assert given[: len(words.split())] == words.split()
    with command.make_context(words, given[len(words.split()) :]) as context:
        assert {"quiet", "verbose"} <= context.params.keys()
    flags = {flag for each in command.params for flag in each.opts}
    assert {"-q", "-v"} <= flags
    assert command.help


def test_no_help_of_what_there_is_not() -> None:
    """Each entry is of a command or of a group of commands."""
    groups = {words.partition(" ")[0] for words in ALL}
    assert HELP.keys() <= ALL.keys() | groups


@pytest.mark.parametrize("words", [[], ["check"], ["rules"], ["rules", "list"]])
def test_short_help(words: list[str]) -> None:
    """``-h`` shows what ``--help`` shows."""
    short, long = (CliRunner().invoke(app, [*words, flag]) for flag in ("-h", "--help"))
    assert short.exit_code == 0
    assert short.output == long.output


def test_version() -> None:
    """In a long and a short form."""
    for flag in ("--version", "-V"):
        assert re.fullmatch(r"spark-cep \S+\n", CliRunner().invoke(app, [flag]).stdout)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str) -> None:
    """What the script of each shell asks: commands, those of a group, options."""
    for typed, offered in (
        ("spark-cep che", "check"),
        ("spark-cep rules pau", "pause"),
        ("spark-cep check --str", "--strict"),
    ):
        words = typed.split()
        asked = {
            "_SPARK_CEP_COMPLETE": f"complete_{shell}",
            "COMP_WORDS": typed,
            "COMP_CWORD": str(len(words) - 1),
            "_TYPER_COMPLETE_ARGS": typed,
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        }
        result = CliRunner().invoke(app, [], prog_name="spark-cep", env=asked)
        assert offered in result.output, result.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["chekc"], "Did you mean 'check'"),
        (["rules", "lst"], "Did you mean 'list'"),
        (["check", "--scema", "x"], "--schema"),
    ],
)
def test_nearest(words: list[str], said: str) -> None:
    """Of an unknown command or option, with exit code 2."""
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert said in result.output


def test_verbosity() -> None:
    """One or the other; an error shows its traceback with ``-v`` alone."""
    wrong = ["check", "/nowhere"]
    assert CliRunner().invoke(app, [*wrong, "-q", "-v"]).exit_code == 2
    for flags, level in (
        (["-q"], Verbosity.QUIET), ([], Verbosity.NORMAL), (["-v"], Verbosity.VERBOSE),
    ):  # fmt: skip
        result = CliRunner().invoke(app, [*wrong, *flags])
        assert result.exit_code == 3
        assert verbosity.get() is level
        assert ("Traceback" in result.stderr) == (level is Verbosity.VERBOSE)
