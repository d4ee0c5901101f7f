"""The commands as documentation: ``docs/commands.md``, written from the parser itself.

``python -m spark_cep.cli.reference > docs/commands.md``
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from typing import Any, Final

import typer

from spark_cep.cli.command_help import HELP
from spark_cep.cli.main import app

_HEAD: Final = """\
# Commands

<!-- Written by `python -m spark_cep.cli.reference`; change the commands, not this file. -->

`spark-cep COMMAND --help` (or `-h`) shows the same text. An unknown command or option ends with
exit code 2 and a suggestion; see [all exit codes](operations/exit-codes.md).

- **Every command** accepts `-q`, `--quiet` (print only results, warnings and errors, no notes and
  no progress) and `-v`, `--verbose` (also print debug messages and the tracebacks of errors).
  `spark-cep --version` (or `-V`) shows the version.
- **Completion**: `spark-cep --install-completion` installs completion of commands, options and
  values for the current shell (bash, zsh, fish or PowerShell). `--show-completion` prints the
  script instead.
- **Colour** is used only on a terminal, and not if `NO_COLOR` is set. `FORCE_COLOR` forces it.
- **For programs**: use `--json` or `--format json`. Results are printed to standard output, and
  notes, progress, warnings and errors to standard error.
"""
_COMMON: Final = ("quiet", "verbose", "help")


def render_reference() -> str:
    """The text of ``docs/commands.md``."""
    root: Any = typer.main.get_command(app)
    context = root.context_class(root, info_name="spark-cep")
    by_group: dict[str, list[str]] = {}
    for words, command, of_command in _commands(root, context):
        group = HELP[words].group
        by_group.setdefault(group, []).append(_section(words, command, of_command))
    parts = [_HEAD]
    for group, sections in by_group.items():
        parts += [f"## {group}\n", *sections]
    return "\n".join(parts)


def _commands(
    group: Any, context: Any, words: tuple[str, ...] = ()
) -> Iterator[tuple[str, Any, Any]]:
    """Yield each command that does something, with its words and a context for its help."""
    for name, command in group.commands.items():
        inner = command.context_class(command, info_name=name, parent=context)
        if hasattr(command, "commands"):
            yield from _commands(command, inner, (*words, name))
        else:
            yield " ".join((*words, name)), command, inner


def _section(words: str, command: Any, context: Any) -> str:
    arguments: list[str] = []
    options: list[str] = []
    for parameter in command.params:
        if parameter.name in _COMMON or getattr(parameter, "hidden", False):
            continue
        is_option = parameter.param_type_name == "option"
        (options if is_option else arguments).append(_row(parameter, context))
    lines = [f"### spark-cep {words}", "", inspect.cleandoc(command.help or ""), ""]
    lines += ["```sh", HELP[words].example, "```", ""]
    for title, rows in (("argument", arguments), ("option", options)):
        if rows:
            lines += [f"| {title} | value | meaning |", "| --- | --- | --- |", *rows, ""]
    return "\n".join(lines)


def _row(parameter: Any, context: Any) -> str:
    """A row of the table: names, the value, the meaning with its default."""
    value = ""
    if parameter.param_type_name == "argument":
        shown = re.sub(r"^\[(.*)\]$", r"\1", parameter.metavar or parameter.name)
        names = f"`{shown}`"
    else:
        names = ", ".join(f"`{each}`" for each in (*parameter.opts, *parameter.secondary_opts))
        if not parameter.is_flag:
            value = f"`{parameter.metavar or parameter.display_type(context)}`"
    parts = [parameter.help or ""]
    default = parameter.get_default(context, call=False)
    if parameter.required:
        parts.append("Required.")
    elif default not in (None, False, [], (), ""):
        parts.append(f"Default: `{getattr(default, 'value', default)}`.")
    cells = (names, value, " ".join(filter(None, parts)))
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


if __name__ == "__main__":
    sys.stdout.write(render_reference())
