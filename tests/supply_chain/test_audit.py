"""The audit by canned answers of pip-audit: what is said, and when it fails."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from supply_chain.audit import Finding, PipAudit, audit, pip_audit
from tests.conftest import ROOT

LOCKS = [
    ROOT / f"requirements{part}.lock" for part in ("", "-runtime", "-other-spark", "-supply-chain")
]
NOT_FOUND = "Dependency not found on PyPI and could not be audited: x (1)"


def answering(changed: dict[str, dict[str, Any]] | None = None, *, leave_out: str = "") -> PipAudit:
    """pip-audit that knows every package; ``changed`` says otherwise of some."""

    def run(requirements: Path) -> list[Finding]:
        names = [
            line.partition("==")
            for line in requirements.read_text("utf-8").splitlines()
            if "==" in line
        ]
        found = [
            {"name": name, "version": rest.split()[0], "vulns": [], **(changed or {}).get(name, {})}
            for name, _, rest in names
            if name != leave_out
        ]
        # pip-audit refuses a file that has a package twice.
        assert len({each["name"] for each in found}) == len(found)
        return found

    return run


def test_all_is_well() -> None:
    """Every version of a package of all lock files was asked for, each once."""
    report = audit(LOCKS, answering())
    assert (report.reached, report.failed) == (True, False)
    pins = {
        line.split()[0]
        for lock in LOCKS
        for line in lock.read_text("utf-8").splitlines()
        if line[:1].isalnum()
    }
    assert {"pyspark==4.2.0", "pyspark==4.3.0"} <= pins
    assert report.text == f"no known vulnerability in {len(pins)} packages"
    assert len(pins) > 60


def test_a_finding_fails_and_is_named() -> None:
    """Package, identifiers and the version that fixes it."""
    bad = {"id": "PYSEC-1", "aliases": ["CVE-2026-1"], "fix_versions": ["9.9"]}
    report = audit(LOCKS, answering({"pyyaml": {"vulns": [bad]}}))
    assert report.failed
    assert "PYSEC-1 (CVE-2026-1), fixed in 9.9" in report.text
    assert "pyyaml 6" in report.text


@pytest.mark.parametrize(
    "run",
    [
        answering({"setuptools": {"skip_reason": NOT_FOUND}}),
        lambda _: "ERROR: could not connect to PyPI's vulnerability feed",
    ],
    ids=["a mirror that knows nothing", "nobody there"],
)
def test_a_service_that_is_away_is_no_clean_bill(run: PipAudit) -> None:
    """It is said, in capitals, that nothing was audited; and nothing more is asked."""
    report = audit(LOCKS, run)
    assert (report.reached, report.failed) == (False, False)
    assert report.text.startswith("NOT AUDITED")
    assert "no known vulnerability" not in report.text


def test_a_package_that_was_passed_over_fails() -> None:
    """Where the service answers, each package must have been looked at."""
    skipped = audit(LOCKS, answering({"pyspark": {"skip_reason": NOT_FOUND}}))
    left_out = audit(LOCKS, answering(leave_out="numpy"))
    assert skipped.failed
    assert "pyspark: not audited" in skipped.text
    assert left_out.failed
    assert "numpy 2" in left_out.text


def test_the_program_that_fails(tmp_path: Path) -> None:
    """What pip-audit says last is the reason."""
    program = tmp_path / "pip-audit"
    program.write_text("#!/bin/sh\necho first >&2\necho 'ERROR: last' >&2\nexit 1\n")
    program.chmod(0o755)
    assert pip_audit(tmp_path)(tmp_path / "any") == "ERROR: last"
    program.write_text('#!/bin/sh\necho \'{"dependencies": [], "fixes": []}\'\n')
    assert pip_audit(tmp_path)(tmp_path / "any") == []


def test_every_lock_file_is_written_and_audited() -> None:
    """By ``make lock`` and ``make audit``."""
    recipes = {}
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in ("audit", "lock"):
        found = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
        assert found is not None
        recipes[target] = found[1]
    for lock in ROOT.glob("requirements*.lock"):
        assert f" {lock.name} " in recipes["audit"]
        assert f",{lock.name}," in recipes["lock"]
