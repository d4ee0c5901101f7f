"""The commands ``audit``, ``sbom``, ``fetch-jars`` and ``lock-jars``; see the Makefile."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from supply_chain import audit as audits
from supply_chain import sbom as sboms
from supply_chain.errors import DependencyError
from supply_chain.jar_download import fetch, locked
from supply_chain.jars import LOCK_FILE, read_lock, rendered

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

Tools = Annotated[Path, typer.Option(help="Folder of the programs pip-audit and cyclonedx-py.")]
Repository = Annotated[
    str | None,
    typer.Option(envvar="SPARK_CEP_MAVEN_REPOSITORY", help="Instead of Maven Central."),
]


@app.command()
def audit(locks: list[Path], tools: Tools) -> None:
    """Ask for known vulnerabilities of all that is pinned in the lock files.

    Fails on findings. Where the vulnerability service does not answer nothing is audited, which is
    said, and fails only when AUDIT_REQUIRED is set.
    """
    run = audits.pip_audit(tools)
    report = audits.audit(locks, run)
    typer.echo(report.text)
    required = bool(os.environ.get("AUDIT_REQUIRED"))
    sys.exit(1 if report.failed or (required and not report.reached) else 0)


@app.command()
def sbom(lock: Path, output: Path, tools: Tools) -> None:
    """Write the CycloneDX document of a lock file and of the pinned jars."""
    document = sboms.with_jars(sboms.of_python(lock, tools))
    text = json.dumps(document, indent=2) + "\n"
    sboms.validate(text, tools)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text, "utf-8")
    typer.echo(f"wrote {output}: {len(document['components'])} components")


@app.command()
def fetch_jars(
    groups: Annotated[list[str], typer.Argument(help="Groups of the lock file, as broker.")],
    into: Annotated[Path, typer.Option(help="The folder of jars.")],
    repository: Repository = None,
) -> None:
    """Download what a folder lacks of the groups, and verify all of it."""
    with _errors_shown():
        paths = fetch(groups, into, repository=repository)
    typer.echo(f"{len(paths)} jars verified in {into}")


@app.command()
def lock_jars(repository: Repository = None) -> None:
    """Compute each group's jars and checksums again from its roots; rewrite the lock file."""
    with _errors_shown():
        groups = [locked(group, repository=repository) for group in read_lock().values()]
    LOCK_FILE.write_text(rendered(groups), "utf-8")
    typer.echo(f"{LOCK_FILE.name}: {sum(len(group.jars) for group in groups)} jars")


@contextmanager
def _errors_shown() -> Iterator[None]:
    """Show a missing dependency as one message, without a traceback, and end with exit code 1."""
    try:
        yield
    except DependencyError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from error


app()
