"""``spark-cep doctor``: what is wrong with the surroundings of a job, and what to do."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import typer
from rich.text import Text

from spark_cep.cli.exit_codes import ADVICE, exit_code
from spark_cep.cli.terminal import AsJson, ConfigFile, Verbosity, out, verbosity
from spark_cep.config import load
from spark_cep.errors import printable_lines

if TYPE_CHECKING:
    from spark_cep.pipeline.driver.commands.doctor import Tried

_STYLES = {"ok": "green", "warning": "yellow", "failed": "red"}


def doctor(
    config: ConfigFile,
    as_json: AsJson = False,
) -> None:
    """Check everything that a job needs to start, and report each problem with its remedy: Python,
    Java, memory, compiled code, brokers, credentials, topics, permissions, clock, registry,
    schemas, rules, checkpoint and disk. The job may be running. Nothing is written; one
    transactional id, PREFIX-doctor, is used. The exit code is that of the first failure."""
    from spark_cep.pipeline.driver.commands.doctor import examine

    failed: list[Tried] = []
    found: list[dict[str, Any]] = []
    for each in examine(load(config)):
        if each.error is not None:
            failed.append(each)
        if as_json:
            found.append(_entry(each))
        elif each.error is not None or each.doubt or verbosity.get() is not Verbosity.QUIET:
            _show(each)
    if as_json:
        typer.echo(json.dumps(found, indent=2))
    if failed and failed[0].error is not None:
        sys.exit(exit_code(failed[0].error))


def _state(tried: Tried) -> str:
    if tried.error is not None:
        return "failed"
    return "warning" if tried.doubt else "ok"


def _show(tried: Tried) -> None:
    state = _state(tried)
    told = tried.doubt or tried.found if tried.error is None else str(tried.error)
    line = Text(f"{state:<8}", style=_STYLES[state])
    out.print(line.append(f"{tried.what}: {printable_lines(told)}", style="default"))
    if tried.error is not None:
        out.print(f"        → {ADVICE[exit_code(tried.error)]}", markup=False)


def _entry(tried: Tried) -> dict[str, Any]:
    error = tried.error
    return {
        "check": tried.what,
        "state": _state(tried),
        "found": str(tried.found) if error is None and not tried.doubt else None,
        "problem": tried.doubt or (None if error is None else str(error)),
        "advice": None if error is None else ADVICE[exit_code(error)],
        "exit_code": 0 if error is None else int(exit_code(error)),
    }
