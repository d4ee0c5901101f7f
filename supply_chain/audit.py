"""Known vulnerabilities of what the lock files pin, as pip-audit knows them.

pip-audit passes over what its service does not know, and succeeds: of a mirror without
vulnerabilities it would report that all is well. So one package is asked for first; when the
service does not know even that, nothing was audited, and that is what is said.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_PROBE: Final = "setuptools"
_SECONDS: Final = 600

Finding = dict[str, Any]
PipAudit = Callable[[Path], list[Finding] | str]
"""A requirements file → what pip-audit says of each package, or why it says nothing."""


@dataclass(frozen=True)
class Report:
    """``reached``: whether the service answered; ``failed``: whether something must be done."""

    text: str
    reached: bool
    failed: bool


def pip_audit(tools: Path) -> PipAudit:
    """The real one, of the folder ``tools``."""

    def run(requirements: Path) -> list[Finding] | str:
        command = [str(tools / "pip-audit"), "--requirement", str(requirements)]
        command += ["--disable-pip", "--require-hashes", "--format", "json", "--desc", "off"]
        command += ["--progress-spinner", "off"]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=_SECONDS
            )
        except subprocess.TimeoutExpired:
            return f"no answer within {_SECONDS} s"
        try:
            found: list[Finding] = json.loads(done.stdout)["dependencies"]
        except (ValueError, KeyError, TypeError):
            lines = done.stderr.strip().splitlines()
            return lines[-1] if lines else f"pip-audit ended with exit code {done.returncode}"
        return found

    return run


def audit(locks: Sequence[Path], run: PipAudit) -> Report:
    """Audit the lock files, each package once."""
    pinned = {name: text for lock in locks for name, text in _pinned(lock).items()}
    probe = _asked({_PROBE: pinned[_PROBE]}, run)
    reason = probe if isinstance(probe, str) else _skipped(probe)
    if reason:
        return Report(
            f"NOT AUDITED: the vulnerability service cannot be reached from here ({reason})."
            " Nothing is known about vulnerabilities; run `make audit` where it answers.",
            reached=False,
            failed=False,
        )
    found = _asked(pinned, run)
    if isinstance(found, str):
        return Report(f"the audit broke off: {found}", reached=True, failed=True)
    lines = [
        f"{package['name']} {package['version']}: {vulnerability['id']}"
        f" ({', '.join(vulnerability.get('aliases', ())) or 'no other names'}), fixed in"
        f" {', '.join(vulnerability.get('fix_versions', ())) or 'no version yet'}"
        for package in found
        for vulnerability in package.get("vulns", ())
    ]
    lines += [f"{p['name']}: not audited: {p['skip_reason']}" for p in found if "skip_reason" in p]
    missing = sorted(set(pinned) - {package["name"].lower() for package in found})
    lines += [f"{name}: not audited: pip-audit does not name it" for name in missing]
    if lines:
        return Report("\n".join(["the audit found:", *lines]), reached=True, failed=True)
    return Report(f"no known vulnerability in {len(found)} packages", reached=True, failed=False)


def _asked(pinned: dict[str, str], run: PipAudit) -> list[Finding] | str:
    with tempfile.TemporaryDirectory(prefix="audit-") as folder:
        file = Path(folder) / "requirements.txt"
        file.write_text("".join(pinned.values()), "utf-8")
        return run(file)


def _skipped(found: list[Finding]) -> str:
    return "; ".join(str(p["skip_reason"]) for p in found if "skip_reason" in p)


def _pinned(lock: Path) -> dict[str, str]:
    """The entries of a lock file by name: a line ``name==version`` with markers and hashes."""
    entries: dict[str, str] = {}
    name = ""
    for line in lock.read_text("utf-8").splitlines(keepends=True):
        if line[:1].isalnum():
            name = line.partition("==")[0].partition("[")[0].lower()
            # Markers would leave out what other systems install.
            pin = line.partition(";")[0].rstrip().rstrip("\\").rstrip()
            entries[name] = f"{pin} \\\n"
        elif line.strip().startswith("--hash"):
            entries[name] += line
    return entries
