"""``python -m bench.soak``: run a soak, write what it found below ``.work/soak``.

Exit code 1 when a figure is not flat, or outputs are not those of the core.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from bench.soak.report import markdown, plot
from bench.soak.run import Options, Soak
from supply_chain.errors import DependencyError

_WORK = Path(".work").resolve()


def main(
    minutes: Annotated[float, typer.Option(help="How long there is load.", min=1)] = 30,
    rate: Annotated[int, typer.Option(help="Records a second.", min=1)] = 400,
    kill_every: Annotated[float, typer.Option(help="Seconds between kills.", min=10)] = 150,
) -> None:
    """Load, rules, kills and late data together: what grows, and whether outputs are right."""
    folder = _WORK / "soak"
    soak = Soak(Options(minutes, rate, kill_every), folder / "run", _WORK / "jars", typer.echo)
    result = soak.run()
    (folder / "result.json").write_text(json.dumps(result.document(), indent=1) + "\n", "utf-8")
    text = markdown(result)
    (folder / "result.md").write_text(text, "utf-8")
    typer.echo(text)
    if result.verdict.examples:
        typer.echo(json.dumps(result.verdict.examples, indent=1))
    try:
        plot(result, folder / "result.svg")
    except DependencyError as error:
        typer.echo(f"no plot: {error}", err=True)
    raise typer.Exit(0 if result.flat is not False and result.verdict.clean else 1)


if __name__ == "__main__":
    typer.run(main)
