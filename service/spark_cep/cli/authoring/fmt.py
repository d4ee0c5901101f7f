"""``spark-cep fmt``: rules in YAML in one form."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from spark_cep.cli.saving import save
from spark_cep.cli.terminal import err, note
from spark_cep.errors import ConfigurationError, Problem, RuleSetError, printable

_STANDARD_INPUT: Final = Path("-")
_SUFFIXES: Final = (".yaml", ".yml")
NOT_FORMATTED: Final = 1
"""The exit code if --check finds a file that would be reformatted."""


def fmt(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="YAML rule files, folders of them, or - for standard input.",
            allow_dash=True,
        ),
    ],
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Write nothing; exit with code 1 if a file would be reformatted."
        ),
    ] = False,
    diff: Annotated[
        bool, typer.Option("--diff", help="Show the changes as a unified diff.")
    ] = False,
) -> None:
    """Format YAML rules: order of keys, indentation, spaces and blank lines. Comments and quotes
    are kept, and the rules' meaning does not change."""
    from spark_cep.cli.authoring.formatting import formatted

    changed: list[str] = []
    problems: list[Problem] = []
    for path in _files(paths):
        piped = path == _STANDARD_INPUT
        name = "<stdin>" if piped else str(path)
        text = sys.stdin.read() if piped else _read(path)
        try:
            shown = formatted(text, name)
        except RuleSetError as error:
            problems += error.problems
            continue
        if shown != text:
            changed.append(name)
            if diff:
                typer.echo("".join(_diff(text, shown, name)), nl=False)
        if piped and not (check or diff):
            typer.echo(shown, nl=False)
        elif shown != text and not check and not piped:
            save(shown, path)
    for name in changed:
        if check:
            err.print(f"{printable(name)}: would be reformatted", markup=False)
        elif name != "<stdin>":
            note(f"{name}: reformatted")
    if problems:
        raise RuleSetError(problems)
    if check and changed:
        sys.exit(NOT_FORMATTED)


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield the files: those given, and the rules in YAML of folders."""
    from spark_cep.rules.sources.folder import rule_files

    for path in paths:
        if path == _STANDARD_INPUT:
            yield path
        elif path.is_dir():
            yield from (each for each in rule_files(path) if each.suffix.lower() in _SUFFIXES)
        elif path.suffix.lower() not in _SUFFIXES:
            raise ConfigurationError(f"{path}: fmt writes files named *.yaml or *.yml")
        else:
            yield path


def _read(file: Path) -> str:
    try:
        # As it is: line ends, too.
        return file.read_bytes().decode("utf-8")
    except OSError as error:
        raise ConfigurationError(f"{file}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{file}: is not UTF-8 text") from error


def _diff(before: str, after: str, name: str) -> Iterator[str]:
    return difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), name, name
    )
