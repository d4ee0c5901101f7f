"""``--quiet`` and ``--verbose``, which every command takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from spark_cep.cli.terminal import Verbosity, verbosity

_PANEL = "Options of every command"
_Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        help="Print only results, warnings and errors, no notes and no progress.",
        rich_help_panel=_PANEL,
    ),
]
_Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose",
        "-v",
        help="Also print debug messages and the tracebacks of errors.",
        rich_help_panel=_PANEL,
    ),
]


def with_common_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command that takes the common options as well. Typer reads options from the signature."""
    given = inspect.signature(command, eval_str=True)

    @wraps(command)
    def called(*, quiet: bool = False, verbose: bool = False, **options: Any) -> None:
        if quiet and verbose:
            raise typer.BadParameter("give --quiet or --verbose, not both")
        chosen = Verbosity.QUIET if quiet else Verbosity.VERBOSE if verbose else Verbosity.NORMAL
        verbosity.set(chosen)
        command(**options)

    own = inspect.signature(called, follow_wrapped=False).parameters
    added = [
        own["quiet"].replace(annotation=_Quiet),
        own["verbose"].replace(annotation=_Verbose),
    ]
    parameters = [
        each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for each in (*given.parameters.values(), *added)
    ]
    # Typer looks at both.
    called.__signature__ = given.replace(parameters=parameters)  # type: ignore[attr-defined]  # as inspect documents it
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    return called
