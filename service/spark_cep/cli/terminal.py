"""Options and output that the commands share: the settings' file, how much is said, printed text,
errors."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

from spark_cep.cli.ending import problems_of, summary
from spark_cep.cli.exit_codes import exit_code
from spark_cep.config import Observability
from spark_cep.config.redaction import redact_text
from spark_cep.errors import Problem, SparkCepError, printable_lines, rendered
from spark_cep.observability.logs import configure

ConfigFile = Annotated[
    Path,
    typer.Option("--config", "-c", help="The settings, a YAML file.", dir_okay=False),
]

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
PagesUrl = Annotated[
    str | None,
    typer.Option(
        "--url", help="URL of the job's pages, http://HOST:PORT; default: that of the settings."
    ),
]
ResultsFrom = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="beginning|now|TIME|DURATION",
        help="Show output written since then: a time (ISO 8601, UTC), or a duration ago, such as"
        " '10 minutes'.",
    ),
]
OutputFile = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", help="File to write to; default: standard output.", dir_okay=False
    ),
]

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


_SHOW_CURSOR: Final = b"\x1b[?25h"


class Verbosity(Enum):
    """The amount that a command prints beside its results, warnings and errors."""

    QUIET = "quiet"
    NORMAL = "normal"
    VERBOSE = "verbose"


#: The verbosity of the command that runs.
verbosity: ContextVar[Verbosity] = ContextVar("verbosity", default=Verbosity.NORMAL)


class CommandGroup(TyperGroup):
    """Commands that show an error of spark-cep's, and end with its exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except SparkCepError as error:
            print_error(error)
            sys.exit(exit_code(error))


def print_error(error: Exception) -> None:
    """Print the error for people; one that is not of ours with its traceback."""
    if not isinstance(error, SparkCepError):
        traceback.print_exception(error)
        return
    problems = problems_of(error)
    for problem in rendered(problems, "error: "):
        err.print(f"{problem}\n", markup=False)
    text = summary(error) if problems else f"error: {printable_lines(str(error))}"
    err.print(text, markup=False)
    if verbosity.get() is Verbosity.VERBOSE:
        trace = "".join(traceback.format_exception(error))
        err.print(printable_lines(redact_text(trace)), markup=False)


def configure_logs(observability: Observability) -> None:
    """Set up the log as the settings say, or, with a verbosity of the command's own, so."""
    level = observability.log_level
    if verbosity.get() is Verbosity.VERBOSE:
        level = "debug"
    elif verbosity.get() is Verbosity.QUIET:
        level = "error" if level == "error" else "warning"
    configure(level, observability.log_format, levels=observability.log_levels)


def note(text: str) -> None:
    """Print a remark for people on standard error, unless they want none."""
    if verbosity.get() is not Verbosity.QUIET:
        err.print(f"note: {printable_lines(text)}", markup=False)


def shows_progress() -> bool:
    """Return whether people see standard error, and want to see how far a command has come."""
    return err.is_terminal and verbosity.get() is not Verbosity.QUIET


def print_warnings(warnings: Sequence[Problem]) -> None:
    """Print warnings for people."""
    for warning in rendered(warnings, "warning: "):
        err.print(f"{warning}\n", markup=False)


def show_cursor() -> None:
    """Show the cursor again that a live view hides, at an end that leaves no time for more."""
    if os.isatty(1):
        os.write(1, _SHOW_CURSOR)


@contextmanager
def compilation_shown() -> Iterator[None]:
    """Tell people where code is compiled in the block, which takes long."""
    # The compiler is slow to import.
    from spark_cep.columns.compilation import compilation_noticed

    if verbosity.get() is Verbosity.QUIET:
        yield
        return
    text = (
        "compiling for this machine, which it does once and which takes up to five minutes;"
        " `spark-cep prepare` does it beforehand"
    )
    with compilation_noticed(
        lambda: err.print(text, markup=False),
        lambda seconds: err.print(f"compiled in {seconds:.0f} s", markup=False),
    ):
        yield


def table(
    console: Console, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]
) -> None:
    """Print a table; columns of numbers stand to the right."""
    console.print(f"\n{title}", style="bold")
    if not rows:
        console.print("none")
        return
    shown = Table(box=None, pad_edge=False, show_edge=False, header_style="")
    for number, column in enumerate(columns):
        numeric = all(row[number].isdigit() for row in rows)
        shown.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        # As it is: brackets of a rule's id are no markup.
        shown.add_row(*map(Text, row))
    console.print(shown)
