"""``spark-cep rules wait``: what a pipeline that has published a rule waits for."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from spark_cep.cli.rules.text import REJECTED, reasons_of
from spark_cep.durations import format_duration
from spark_cep.errors import PagesUnavailableError, printable

_EACH_SECONDS: Final = 0.5
#: A batch under the rule is committed.
_RUNS: Final = ("active", "scheduled", "shadow")
#: Two looks of the job at the folder, and the time to check what they found.
_LOOKS: Final = 3


class RulePages(Protocol):
    """The pages of a job that a wait reads."""

    def rules(self) -> list[dict[str, Any]]:
        """The rows of the page ``/rules``."""

    def ready(self) -> bool:
        """Return whether the job does its work."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A rule, in this ``version`` or in any, that is to run, or to be ``gone``."""

    id: str
    version: int | None = None
    gone: bool = False

    def runs(self, row: dict[str, Any]) -> bool:
        """Return whether the row is of this rule, and the job has it switched on."""
        return (
            row["id"] == self.id
            and self.version in (None, row.get("version"))
            and row["state"] not in (REJECTED, "disabled")
        )


@dataclass(frozen=True, slots=True)
class WaitEnd:
    """The end of a wait, in words."""

    ok: bool
    text: str
    rejected: bool = False


def wait_for(
    pages: RulePages,
    wanted: Wanted,
    limit_ms: int,
    refresh_ms: int | None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> WaitEnd:
    """Wait for a rule for ``limit_ms`` at most. A job that does not answer may be starting, and is
    asked again; raises PagesUnavailableError when it has not answered by the end.

    What is rejected when waiting begins may be what was there before the rule was published: it
    counts after a few of the job's looks at its folder, each after ``refresh_ms``.
    """
    began = clock()
    settled = began + (refresh_ms or 0) * _LOOKS / 1000
    old: list[str] | None = None
    while True:
        last = clock() - began >= limit_ms / 1000
        try:
            rules = pages.rules()
            ready = not wanted.gone or pages.ready()
        except PagesUnavailableError:
            if last:
                raise
        else:
            reasons = reasons_of([row for row in rules if _rejects(row, wanted)])
            old = reasons if old is None else old
            done = _done(rules, wanted, ready=ready)
            # Of any version: what runs may be the old one.
            sure = wanted.gone or wanted.version is not None or not reasons
            if done is not None and sure:
                return WaitEnd(True, done)
            new = (
                reasons
                if clock() >= settled
                else [reason for reason in reasons if reason not in old]
            )
            if new and not wanted.gone:
                return WaitEnd(False, "\n\n".join(new), rejected=True)
            if last:
                return WaitEnd(False, _too_late(rules, wanted, limit_ms))
        sleep(max(0.0, min(_EACH_SECONDS, began + limit_ms / 1000 - clock())))


def _rejects(row: dict[str, Any], wanted: Wanted) -> bool:
    return bool(row["state"] == REJECTED and row["id"] == wanted.id)


def _done(rules: Sequence[dict[str, Any]], wanted: Wanted, *, ready: bool) -> str | None:
    rule = printable(wanted.id)
    running = [row for row in rules if wanted.runs(row)]
    if wanted.gone:
        # One that has just started knows no rules yet.
        return None if running or not ready else f"{rule} is gone"
    for row in running:
        if row["state"] in _RUNS:
            return (
                f"{rule} version {row.get('version')} is {row['state']} since batch"
                f" {row.get('since_batch')}"
            )
    return None


def _too_late(rules: Sequence[dict[str, Any]], wanted: Wanted, limit_ms: int) -> str:
    states = [
        f"version {row.get('version')} is {printable(str(row['state']))}"
        for row in rules
        if row["id"] == wanted.id and row["state"] != REJECTED
    ]
    what = "not gone" if wanted.gone else "not active"
    version = "" if wanted.version is None else f" version {wanted.version}"
    text = (
        f"{printable(wanted.id)}{version} is {what} after {format_duration(limit_ms)}:"
        f" {', '.join(states) or 'the job has no such rule'}"
    )
    # A file that is no YAML has no rule's id.
    return "\n\n".join([text, *reasons_of([row for row in rules if row["state"] == REJECTED])])
