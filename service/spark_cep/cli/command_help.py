"""The help of commands beside their options: the group of each, and an example of its use."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

import typer
from rich.markup import escape

from spark_cep.cli.common_options import with_common_options

SETUP: Final = "Set up"
RULES: Final = "Write and try rules"
JOB: Final = "Run and watch a job"


class CommandHelp(NamedTuple):
    """The group of a command in --help, and an example that can be copied."""

    group: str
    example: str


#: By the command's words. Groups stand in --help in the order of their first command.
HELP: Final = {
    "check": CommandHelp(RULES, "spark-cep check rules --config config.yaml"),
    "lsp": CommandHelp(RULES, "spark-cep lsp --schema schemas"),
    "fmt": CommandHelp(RULES, "spark-cep fmt --check rules"),
    "explain": CommandHelp(RULES, "spark-cep explain rules --rule brute-force"),
    "test": CommandHelp(RULES, "spark-cep test rules --schema login.avsc"),
    "backtest": CommandHelp(RULES, "spark-cep backtest --rules rules --input logins.jsonl"),
    "why": CommandHelp(RULES, "spark-cep why --rule rules/r.yaml --input logins.jsonl --key ann"),
    "play": CommandHelp(RULES, "spark-cep play rules/brute-force.yaml logins.jsonl"),
    "schema": CommandHelp(SETUP, "spark-cep schema infer logins.jsonl"),
    "schema infer": CommandHelp(
        SETUP, "spark-cep schema infer logins.jsonl --output schemas/login.avsc"
    ),
    "tap": CommandHelp(
        RULES, "spark-cep tap --rule r --key ann --config config.yaml --output r.cases.yaml"
    ),
    "init": CommandHelp(SETUP, "spark-cep init my-job --input payments.jsonl"),
    "config": CommandHelp(SETUP, "spark-cep config show --config config.yaml"),
    "config show": CommandHelp(SETUP, "spark-cep config show --config config.yaml time"),
    "config check": CommandHelp(SETUP, "spark-cep config check --config config.yaml"),
    "prepare": CommandHelp(SETUP, "spark-cep prepare"),
    "doctor": CommandHelp(SETUP, "spark-cep doctor --config config.yaml"),
    "run": CommandHelp(JOB, "spark-cep run --config config.yaml"),
    "tail": CommandHelp(
        JOB, "spark-cep tail --config config.yaml --rule brute-force --from '1 hour'"
    ),
    "watch": CommandHelp(JOB, "spark-cep watch --config config.yaml"),
    "state": CommandHelp(JOB, "spark-cep state --config config.yaml --key ann"),
    "dead-letters": CommandHelp(JOB, "spark-cep dead-letters --config config.yaml --last 5"),
    "rescale": CommandHelp(JOB, "spark-cep rescale --config config.yaml --partitions 8"),
    "reset-clock": CommandHelp(JOB, "spark-cep reset-clock --config config.yaml"),
    "rules": CommandHelp(JOB, "spark-cep rules list --config config.yaml"),
    "rules list": CommandHelp(JOB, "spark-cep rules list --config config.yaml --json"),
    "rules history": CommandHelp(JOB, "spark-cep rules history --config config.yaml"),
    "rules show": CommandHelp(JOB, "spark-cep rules show --config config.yaml brute-force"),
    "rules diff": CommandHelp(JOB, "spark-cep rules diff old-rules rules --words"),
    "rules wait": CommandHelp(
        JOB, "spark-cep rules wait --config config.yaml brute-force --version 2"
    ),
    "rules pause": CommandHelp(
        JOB, "spark-cep rules pause --config config.yaml brute-force --reason 'too many alerts'"
    ),
    "rules resume": CommandHelp(JOB, "spark-cep rules resume --config config.yaml brute-force"),
    "rules rollback": CommandHelp(
        JOB, "spark-cep rules rollback --config config.yaml brute-force --to 1"
    ),
}


def complete(app: typer.Typer, words: str = "") -> None:
    """Give each command of ``app``, and of its groups, the common options and its help."""
    for command in app.registered_commands:
        called = command.callback
        if called is None:
            continue
        known = HELP.get(words + (command.name or called.__name__.replace("_", "-")))
        command.callback = with_common_options(called)
        command.short_help = first_sentence(called)
        if known is not None:
            command.rich_help_panel = None if words else known.group
            command.epilog = f"Example: {escape(known.example)}"
    for group in app.registered_groups:
        if group.typer_instance is not None:
            name = group.typer_instance.info.name or ""
            if not words and name in HELP:
                group.rich_help_panel = HELP[name].group
            complete(group.typer_instance, f"{words}{name} ".lstrip())


def first_sentence(called: Callable[..., object]) -> str:
    """The first sentence of a docstring, in one line."""
    text = " ".join((called.__doc__ or "").split())
    return f"{re.split(r'(?<=[a-z])[.:] ', text, maxsplit=1)[0].rstrip('.')}."
