"""The log of rule sets in a checkpoint: ``rules/N`` is what batches from N on run under, until the
next file.

A file is written after Spark has planned batch N and before anything of it is done. So a batch that
is done in part has its rules in the log, and is repeated under them, whatever their source says
by then; and the files are the history of which rules any batch ran under.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from spark_cep.errors import RESTORE, Problem, RuleSetError, StateError
from spark_cep.pattern.document.loading import LoadedRule, load_rules
from spark_cep.rules.pauses import Pause
from spark_cep.rules.plans import plan_fingerprint
from spark_cep.rules.rule_set import DrainingVersion, RuleSet, Version
from spark_cep.rules.topic_records import Offsets

if TYPE_CHECKING:
    from spark_cep.pipeline.driver.checkpoint.files import CheckpointFiles
    from spark_cep.pipeline.driver.checkpoint.local_files import LocalFiles

LOG: Final = "rules"
_FORMAT: Final = 1
_FILE: Final = re.compile(r"(\d+)(?:\.(\d+))?")
#: Spark keeps so many batches, too; each of them must find its rules.
_MOST_SETS: Final = 100
#: Versions whose fingerprint is known: as many as a source may hold entries.
MOST_FINGERPRINTS: Final = 10_000


@dataclass(frozen=True, slots=True)
class LoggedRules:
    """``rules`` are those of batches from ``batch`` on; ``number`` counts the sets of a
    checkpoint, from 1. ``attempts``: how many runs have begun the first batch with an event
    (:meth:`is_first`). ``set_aside``: why a rule does not run that was new in a batch which failed
    too often, by the digest of its text. ``since``: the first batch of each version that takes
    part, also of those that drain; ``starts``: where these batches begin. ``history``: an id of the
    checkpoint, the same in all its sets. ``fingerprints``: of the plans of all versions that the
    sets of the checkpoint have had, those of the newest set last; of more than 10,000 the ones that
    were there last."""

    batch: int
    number: int
    rules: RuleSet
    attempts: int = 1
    set_aside: Mapping[str, str] = field(default_factory=dict)
    since: Mapping[Version, int] = field(default_factory=dict)
    starts: Mapping[int, Offsets] = field(default_factory=dict)
    history: str = ""
    fingerprints: Mapping[Version, str] = field(default_factory=dict)

    @classmethod
    def following(
        cls, before: LoggedRules | None, batch: int, offsets: Offsets, rules: RuleSet
    ) -> LoggedRules:
        """The set that follows ``before`` with a batch that begins at ``offsets``."""
        if before is None:
            before = cls(batch, 0, RuleSet(), history=uuid.uuid4().hex)
        versions = {*before.rules.versions}
        since = {
            version: before.since.get(version, before.batch) if version in versions else batch
            for version in rules.versions
        }
        known = {**before.starts, batch: offsets}
        starts = {
            begins: known[begins] for begins in sorted({batch, *since.values()} & known.keys())
        }
        return cls(
            batch,
            before.number + 1,
            rules,
            set_aside=before.set_aside,
            since=since,
            starts=starts,
            history=before.history,
            fingerprints=_fingerprints(before.fingerprints, rules),
        )

    def is_first(self, batch: int, offsets: Offsets) -> bool:
        """Tell whether a batch that begins at ``offsets`` is the first in which these rules see an
        event: those before it had none."""
        return batch == self.batch or offsets == self.starts.get(self.batch)

    def against(self, rule: LoadedRule) -> list[Problem]:
        """The problem that a rule is set aside, if it is."""
        reason = self.set_aside.get(digest(rule)) if self.set_aside else None
        return [] if reason is None else [rule.places.problem(reason, ("id",))]


def _fingerprints(known: Mapping[Version, str], rules: RuleSet) -> dict[Version, str]:
    members = [*rules.carried, *(each.loaded for each in rules.draining), *rules.loaded]
    now = {(one.rule.id, one.rule.version): plan_fingerprint(one) for one in members}
    merged = {version: known[version] for version in known if version not in now} | now
    return dict(islice(merged.items(), max(0, len(merged) - MOST_FINGERPRINTS), None))


def digest(rule: LoadedRule) -> str:
    """A digest of the rule's canonical text, which no other rule has."""
    return hashlib.sha256(rule.text.encode()).hexdigest()


#: Rules that were read, by canonical text and source: sets have most of theirs in common.
_Known = dict[tuple[str, str], list[LoadedRule]]


class RuleHistory:
    """The log of one checkpoint, as it can be read. What is said again of batch N is in
    ``rules/N.1``, ``rules/N.2``, …, of which the last one counts: not every storage replaces a file
    at once."""

    def __init__(self, files: CheckpointFiles | LocalFiles) -> None:
        self._files = files

    def of(self, batch: int) -> LoggedRules | None:
        """The rules of a batch; ``None`` where nothing was done under any yet. StateError when the
        log is damaged."""
        before = [name for name in self._names() if name[0] <= batch]
        return self._read(*before[-1], {}) if before else None

    def history(self) -> list[LoggedRules]:
        """All sets that are there, the oldest first. StateError when the log is damaged."""
        newest = dict(self._names())
        known: _Known = {}
        return [self._read(*name, known) for name in newest.items()]

    def _names(self) -> list[tuple[int, int]]:
        """Batches and revisions, in order."""
        names = map(_FILE.fullmatch, self._files.names(LOG))
        return sorted((int(name[1]), int(name[2] or 0)) for name in names if name is not None)

    def _read(self, batch: int, revision: int, known: _Known) -> LoggedRules:
        name = _name(batch, revision)
        (content,) = self._files.parsed(name)
        try:
            if content["format"] != _FORMAT:
                raise StateError(
                    f"{self._files.location}/{name} has format {content['format']}, of another"
                    f" version of spark-cep; this one reads {_FORMAT}"
                )
            loaded: list[LoadedRule] = []
            for entry in content["rules"]:
                loaded += _loaded(entry, known)
            draining = [
                DrainingVersion(one, entry["limit_ms"], entry.get("until_ms"))
                for entry in content.get("draining", ())
                for one in _loaded(entry, known)
            ]
            carried = [one for entry in content.get("carried", ()) for one in _loaded(entry, known)]
            return LoggedRules(
                batch,
                int(content["number"]),
                RuleSet(
                    tuple(loaded),
                    paused={
                        rule: Pause(**pause) for rule, pause in content.get("paused", {}).items()
                    },
                    draining=tuple(draining),
                    carried=tuple(carried),
                ),
                int(content["attempts"]),
                content["set_aside"],
                _versions(content, "since"),
                _starts(content),
                content.get("history", ""),
                _versions(content, "meanings"),
            )
        except (LookupError, TypeError, ValueError, RuleSetError) as error:
            reason = str(error).partition("\n")[0][:200]
            raise StateError(
                f"{self._files.location}/{name} is damaged ({reason}): {RESTORE}"
            ) from error


class RuleLog(RuleHistory):
    """The history as the job keeps it, which writes it."""

    def __init__(self, checkpoint: CheckpointFiles) -> None:
        super().__init__(checkpoint)
        self._checkpoint = checkpoint

    def forget_after(self, batch: int) -> None:
        """Remove sets of batches that are not planned: an older copy of the checkpoint was put back
        over them. They would count when these batches come. StateError when that fails."""
        for each, revision in self._names():
            if each > batch:
                self._delete(each, revision)

    def write(self, logged: LoggedRules) -> None:
        """Write a set that is newer than all others, or the newest one again, and remove what no
        batch can ask for. Raises StateError when that fails."""
        rules = [_entry(one) for one in logged.rules.loaded]
        draining = [
            {**_entry(d.loaded), "limit_ms": d.limit_ms}
            | ({} if d.until_ms is None else {"until_ms": d.until_ms})
            for d in logged.rules.draining
        ]
        content = {
            "format": _FORMAT,
            "number": logged.number,
            "rules": rules,
            "draining": draining,
            "carried": [_entry(one) for one in logged.rules.carried],
            "attempts": logged.attempts,
            "set_aside": dict(logged.set_aside),
            "since": [[*version, batch] for version, batch in logged.since.items()],
            "meanings": [[*version, each] for version, each in logged.fingerprints.items()],
            "starts": dict(logged.starts),
            "history": logged.history,
            "paused": {rule: asdict(pause) for rule, pause in logged.rules.paused.items()},
        }
        there = self._names()
        again = [revision for batch, revision in there if batch == logged.batch]
        name = _name(logged.batch, again[-1] + 1 if again else 0)
        self._checkpoint.write(name, json.dumps(content))
        kept = sorted({batch for batch, _ in there})[-_MOST_SETS:]
        for batch, revision in there:
            if batch < kept[0]:
                self._delete(batch, revision)

    def _delete(self, batch: int, revision: int) -> None:
        self._checkpoint.delete(f"{self._checkpoint.location}/{_name(batch, revision)}")


def _entry(one: LoadedRule) -> dict[str, Any]:
    return {"source": one.places.source, "rule": one.text}


def _loaded(entry: Mapping[str, Any], known: _Known) -> list[LoadedRule]:
    place = entry["rule"], entry["source"]
    if place not in known:
        known[place] = load_rules(*place)
    return known[place]


def _versions(content: dict[str, Any], name: str) -> dict[Version, Any]:
    return {(rule, version): value for rule, version, value in content.get(name, ())}


def _starts(content: dict[str, Any]) -> dict[int, Offsets]:
    return {
        int(batch): {topic: {int(p): at for p, at in each.items()} for topic, each in ends.items()}
        for batch, ends in content.get("starts", {}).items()
    }


def _name(batch: int, revision: int) -> str:
    return f"{LOG}/{batch}.{revision}" if revision else f"{LOG}/{batch}"
