"""Arguments and exit codes of the demo.

Exit codes: 0 everything came out as expected, 1 it did not or something failed, 2 wrong arguments,
130 interrupted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from examples.demo.interruption import Interruption
from examples.demo.run import Options, run
from examples.demo.screen import Screen

_WORK = Path(__file__).parents[2] / ".work"


def start(interruption: Interruption) -> None:
    """Read the command line and run."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

    @app.command(help="Run the demo: broker, registry and the job on this machine, with a stream.")
    def demo(
        keep: Annotated[
            bool,
            typer.Option(
                "--keep",
                help="Leave the files of the run, and broker and registry running until Ctrl-C, to"
                " try rules of your own against them.",
            ),
        ] = False,
        watch: Annotated[
            bool,
            typer.Option(
                "--watch",
                help="Go on with the stream after the comparison, for the live page, until Ctrl-C.",
            ),
        ] = False,
        verbose: Annotated[
            bool, typer.Option("--verbose", help="Say where each process writes its log.")
        ] = False,
        plain: Annotated[
            bool, typer.Option("--plain", help="Plain lines, also on a terminal.")
        ] = False,
        folder: Annotated[
            Path, typer.Option(help="Where everything is written; it is emptied first.")
        ] = _WORK / "demo",
        jars: Annotated[Path, typer.Option(help="Where `make setup` put the jars.")] = (
            _WORK / "jars"
        ),
    ) -> None:
        options = Options(folder.resolve(), jars.resolve(), keep, watch, verbose)
        raise typer.Exit(run(options, Screen(plain=plain), interruption))

    app()
