"""``python -m supply_chain audit`` and ``python -m supply_chain sbom``; see the Makefile."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from supply_chain import audit as audits
from supply_chain import sbom as sboms

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

Tools = Annotated[Path, typer.Option(help="Folder of the programs pip-audit and cyclonedx-py.")]


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


app()
