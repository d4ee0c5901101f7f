"""Known vulnerabilities of what the lock files pin, as pip-audit knows them.

pip-audit passes over what its service does not know, and succeeds: of a mirror without
vulnerabilities it would report that all is well. So one package is asked for first; when the
service does not know even that, nothing was audited, and that is what is said.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_PROBE: Final = "setuptools"
_SECONDS: Final = 600

#: Name and version.
Pin = tuple[str, str]
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
    """Audit the lock files, each version of a package once."""
    pinned = {pin: text for lock in locks for pin, text in _pinned(lock).items()}
    probe = _asked([next(text for (name, _), text in pinned.items() if name == _PROBE)], run)
    reason = probe if isinstance(probe, str) else _skipped(probe)
    if reason:
        return Report(
            f"NOT AUDITED: the vulnerability service cannot be reached from here ({reason})."
            " Nothing is known about vulnerabilities; run `make audit` where it answers.",
            reached=False,
            failed=False,
        )
    found: list[Finding] = []
    for texts in _without_doubles(pinned):
        answer = _asked(texts, run)
        if isinstance(answer, str):
            return Report(f"the audit broke off: {answer}", reached=True, failed=True)
        found += answer
    lines = [
        f"{package['name']} {package['version']}: {vulnerability['id']}"
        f" ({', '.join(vulnerability.get('aliases', ())) or 'no other names'}), fixed in"
        f" {', '.join(vulnerability.get('fix_versions', ())) or 'no version yet'}"
        for package in found
        for vulnerability in package.get("vulns", ())
    ]
    skipped = {p["name"].lower(): p["skip_reason"] for p in found if "skip_reason" in p}
    lines += [f"{name}: not audited: {reason}" for name, reason in skipped.items()]
    named = {(p["name"].lower(), p.get("version")) for p in found}
    lines += [
        f"{name} {version}: not audited: pip-audit does not name it"
        for name, version in sorted(pinned.keys() - named)
        if name not in skipped
    ]
    if lines:
        return Report("\n".join(["the audit found:", *lines]), reached=True, failed=True)
    return Report(f"no known vulnerability in {len(found)} packages", reached=True, failed=False)


def _asked(texts: Iterable[str], run: PipAudit) -> list[Finding] | str:
    with tempfile.TemporaryDirectory(prefix="audit-") as folder:
        file = Path(folder) / "requirements.txt"
        file.write_text("".join(texts), "utf-8")
        return run(file)


def _without_doubles(pinned: Mapping[Pin, str]) -> Iterator[list[str]]:
    """The entries in as few lists as have no package twice, which pip-audit refuses."""
    left = dict(pinned)
    while left:
        first = {name: (name, version) for name, version in reversed(left)}
        yield [left.pop(pin) for pin in first.values()]


def _skipped(found: list[Finding]) -> str:
    return "; ".join(str(p["skip_reason"]) for p in found if "skip_reason" in p)


def _pinned(lock: Path) -> dict[Pin, str]:
    """The entries of a lock file: a line ``name==version`` with hashes."""
    entries: dict[Pin, str] = {}
    for line in lock.read_text("utf-8").splitlines(keepends=True):
        if line[:1].isalnum():
            # Markers would leave out what other systems install.
            pinned = line.partition(";")[0].rstrip().rstrip("\\").rstrip()
            name, _, version = pinned.partition("==")
            pin = name.partition("[")[0].lower(), version
            entries[pin] = f"{pinned} \\\n"
        elif line.strip().startswith("--hash"):
            entries[pin] += line
    return entries
