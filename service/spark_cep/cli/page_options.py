"""Options of the commands that serve a page, and what they say once it is served."""

from __future__ import annotations

from typing import Annotated

import typer

from spark_cep.cli.terminal import out

LOOPBACK = "127.0.0.1"
Host = Annotated[
    str,
    typer.Option(
        "--host",
        help="Address to listen on; any other than 127.0.0.1 lets the network use the page.",
    ),
]
Port = Annotated[
    int,
    typer.Option("--port", "-p", min=0, max=65_535, help="Port to listen on; 0 for any free port."),
]
OpenBrowser = Annotated[
    bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
]


def say_where(address: str) -> None:
    """Print the address of a page that is served."""
    out.print(f"{address}  (Ctrl-C ends it)", markup=False, highlight=False)
