"""Records of the topics that say which rules a job has: one of every decision (append-only) and one
of every rule's state (compacted). JSON; ``schemas`` makes the public schemas from these classes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from spark_cep.errors import Problem, RuleSetError
from spark_cep.pattern.document.loading import LoadedRule, load_rules
from spark_cep.rules.pauses import Pause
from spark_cep.rules.rule_set import DrainingVersion, RuleSet, versions_by_id
from spark_cep.rules.set_change import ChangeKind, RuleChange, changes_between

#: By topic and partition.
Offsets = dict[str, dict[int, int]]

State = Literal[
    "accepted", "scheduled", "active", "shadow", "draining", "paused", "disabled", "rejected"
]
_ID_DIGITS: Final = 32
#: A record holds up to four versions, in JSON, and by default Kafka takes one of a million bytes.
MOST_TEXT_BYTES: Final = 240_000
#: What the topic of decisions is made with: none of them expires.
KEPT: Final = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    job: str = Field(description="`spark.app_name` of the job")

    def value(self) -> bytes:
        """The record's value. In a name that is no text, bytes that are no character become
        ``?``."""
        content = self.model_dump(exclude_none=True)
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "replace")


class _SetRecord(_Record):
    record_id: str = Field(description="equal for a record that was written again")
    history: str = Field(description="of one checkpoint; numbers of rule sets count within it")
    rule_set: int = Field(description="number of the rule set in the checkpoint, from 1", ge=1)
    fingerprint: str = Field(description="SHA-256 of the whole rule set")
    batch: int = Field(description="the first batch under the rule set", ge=0)


class Carried(BaseModel):
    """A version whose partial matches move to a newer one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: str = Field(description="canonical text")
    source: str = Field(description="file, record or row that the rule is from")


class Decision(_SetRecord):
    """A rule came, changed, went, was paused or resumed with a rule set; or a version of it began
    to drain, or has."""

    kind: Literal["decision"] = "decision"
    rule_id: str
    rule_version: int
    decision: ChangeKind
    text: str | None = Field(None, description="canonical text, where it came, changed or drains")
    source: str | None = Field(None, description="file, record or row that the rule is from")
    by: str | None = Field(None, description="who paused the rule")
    reason: str | None = Field(None, description="why the rule is paused")
    carries: list[Carried] | None = Field(
        None, description="versions whose partial matches move to the one that runs, newest first"
    )
    drain_limit_ms: int | None = Field(
        None, description="how long the version may drain; absent: it finishes nothing"
    )
    drain_until_ms: int | None = Field(
        None, description="event time at which the newer version begins, if it has not yet"
    )
    paused_version: int | None = Field(None, description="absent: all versions are paused")


class SetBegins(_SetRecord):
    """A rule set is decided for a batch; written behind the decisions that led to it."""

    kind: Literal["rule_set"] = "rule_set"
    offsets: Offsets = Field(description="where that batch begins, by topic and partition")
    rules: int = Field(description="rules in the set, those that take no part included", ge=0)
    decisions: int = Field(description="decisions that led from the set before to this one", ge=0)


AuditRecord = Decision | SetBegins
_READER: Final[TypeAdapter[AuditRecord]] = TypeAdapter(AuditRecord)


class StatusRecord(_Record):
    """The state of a version of a rule, or of what was rejected."""

    rule_id: str | None = Field(None, description="absent where none could be read")
    rule_version: int | None = None
    state: State
    since_batch: int | None = Field(None, description="first batch of this version")
    since_offsets: Offsets | None = Field(None, description="where that batch began")
    fingerprint: str | None = Field(None, description="of the compiled rule")
    source: str | None = Field(None, description="file, record or row")
    reason: str | None = Field(None, description="why it is paused or rejected")

    def key(self, number: int = 0) -> bytes:
        """The record's key: id and version, or source and id of a rejected entry. ``number`` counts
        those that have these alike."""
        of: list[object] = [self.job, self.rule_id, self.rule_version]
        if self.state == "rejected":
            of = [self.job, "rejected", self.source, self.rule_id]
        return json.dumps([*of, number] if number else of).encode()


def audit_records(
    common: Mapping[str, Any], offsets: Offsets, before: RuleSet, after: RuleSet
) -> Iterator[tuple[bytes, AuditRecord]]:
    """Keys and records that lead from one rule set to the next, whose first batch begins at
    ``offsets``; that of the set last. ``common``: job, history, number and batch of the set. The
    same again gives the same records."""
    changes = changes_between(before, after)
    common = {**common, "fingerprint": after.fingerprint}
    named = "\n".join(map(str, common.values()))
    for change in changes:
        rule = change.loaded.rule
        decision = Decision(
            **common,
            record_id=_digest(f"{named}\n{rule.id}\n{rule.version}\n{change.kind}"),
            rule_id=rule.id,
            rule_version=rule.version,
            decision=change.kind,
            **_details(change),
        )
        yield rule.id.encode(), decision
    yield (
        b"",
        SetBegins(
            **common,
            record_id=_digest(named),
            offsets=offsets,
            rules=len(after.loaded),
            decisions=len(changes),
        ),
    )


def too_large(one: LoadedRule) -> list[Problem]:
    """The problem that no record of a decision could hold the rule, if none can."""
    size = len(json.dumps(one.text, ensure_ascii=False).encode("utf-8", "replace"))
    if size <= MOST_TEXT_BYTES:
        return []
    message = f"the rule is too large for a record of Kafka: its text has {size:,} bytes"
    allowed = f"{MOST_TEXT_BYTES:,} bytes in canonical form, as JSON"
    return [one.places.problem(message, ("id",), allowed=allowed)]


def audit_record(value: bytes) -> AuditRecord | None:
    """The record with this value; ``None`` for what is none: anybody may write to a topic."""
    try:
        return _READER.validate_json(value)
    except ValidationError:
        return None


def _details(change: RuleChange) -> dict[str, Any]:
    details: dict[str, Any] = {}
    if change.kind in ("added", "changed", "draining"):
        details = _text_and_source(change.loaded)
    if change.pause is not None:
        pause = change.pause
        details = {"by": pause.by, "reason": pause.reason, "paused_version": pause.version}
    if change.draining is not None:
        details["drain_limit_ms"], details["drain_until_ms"] = change.draining.time
    if change.kind == "carried":
        details["carries"] = [_text_and_source(old) for old in change.carried]
    return details


def _text_and_source(one: LoadedRule) -> dict[str, Any]:
    return {"text": one.text, "source": one.places.source}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_ID_DIGITS]


def rule_sets(records: Iterable[AuditRecord]) -> dict[int, tuple[SetBegins, RuleSet]]:
    """The rule sets of one job by number, made from its records of decisions from the first set on;
    of several histories the one that was written last. A record that was written again counts once.
    Where a set was decided again before anything was done under it, the last decision counts.
    Raises RuleSetError where records are missing."""
    ends: dict[int, SetBegins] = {}
    decided: dict[tuple[int, str], dict[str, Decision]] = {}
    histories: dict[
        str, tuple[dict[int, SetBegins], dict[tuple[int, str], dict[str, Decision]]]
    ] = {}
    history: str | None = None
    for record in records:
        if record.history != history:
            # A checkpoint of its own, or one that was taken up again.
            history = record.history
            ends, decided = histories.setdefault(history, ({}, {}))
        if isinstance(record, SetBegins):
            ends[record.rule_set] = record
            # Of a checkpoint that was put back from an older copy, numbers count again.
            for number in [later for later in ends if later > record.rule_set]:
                del ends[number]
        else:
            of_set = decided.setdefault((record.rule_set, record.fingerprint), {})
            of_set[record.record_id] = record
    sets: dict[int, tuple[SetBegins, RuleSet]] = {}
    rules = RuleSet()
    for number in sorted(ends):
        end = ends[number]
        rules = _after(rules, decided.get((number, end.fingerprint), {}).values())
        if rules.fingerprint != end.fingerprint:
            message = f"records that lead to rule set {number} of {end.job} are missing"
            raise RuleSetError([Problem(message=message, allowed="all records from set 1 on")])
        sets[number] = end, rules
    return sets


def _after(rules: RuleSet, decisions: Iterable[Decision]) -> RuleSet:
    loaded, paused = dict(rules.by_id), dict(rules.paused)
    carried = versions_by_id(rules.carried)
    draining = {(each.rule.id, each.rule.version): each for each in rules.draining}
    for decision in decisions:
        match decision.decision:
            case "added" | "changed":
                (loaded[decision.rule_id],) = load_rules(decision.text or "", decision.source or "")
            case "removed":
                loaded.pop(decision.rule_id, None)
            case "paused":
                pause = Pause(decision.reason or "", decision.by or "", decision.paused_version)
                paused[decision.rule_id] = pause
            case "resumed":
                paused.pop(decision.rule_id, None)
            case "draining":
                (old,) = load_rules(decision.text or "", decision.source or "")
                draining[decision.rule_id, decision.rule_version] = DrainingVersion(
                    old, decision.drain_limit_ms, decision.drain_until_ms
                )
            case "carried":
                carried[decision.rule_id] = [
                    one
                    for old in decision.carries or ()
                    for one in load_rules(old.text, old.source)
                ]
            case "drained":
                draining.pop((decision.rule_id, decision.rule_version), None)
    return RuleSet(
        tuple(loaded[rule] for rule in sorted(loaded)),
        draining=tuple(draining[version] for version in sorted(draining)),
        carried=tuple(one for rule in sorted(loaded) for one in carried.get(rule, ())),
    ).pausing(paused)
