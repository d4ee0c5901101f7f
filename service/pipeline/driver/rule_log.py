"""The log of rule sets in a checkpoint: ``rules/N`` is what batches from N on run under, until the
next file.

A file is written after Spark has planned batch N and before anything of it is done. So a batch that
is done in part has its rules in the log, and is repeated under them, whatever the rules folder says
by then; and the files are the history of which rules any batch ran under.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from service.errors import RESTORE, RuleSetError, StateError
from service.pattern.canonical import to_yaml
from service.pattern.document import load_rules
from service.pipeline.driver.checkpoint_files import CheckpointFiles
from service.rules.rule_set import RuleSet

LOG: Final = "rules"
_FORMAT: Final = 1
#: Spark keeps so many batches, too; each of them must find its rules.
_MOST_SETS: Final = 100


@dataclass(frozen=True, slots=True)
class LoggedRules:
    """``rules`` are those of batches from ``batch`` on; ``number`` counts the sets of a
    checkpoint, from 1."""

    batch: int
    number: int
    rules: RuleSet


class RuleLog:
    """The log of one checkpoint."""

    def __init__(self, checkpoint: CheckpointFiles) -> None:
        self._checkpoint = checkpoint

    def of(self, batch: int) -> LoggedRules | None:
        """The rules of a batch; ``None`` where nothing was done under any yet. StateError when the
        log is damaged."""
        before = [first for first in self._checkpoint.batches(LOG) if first <= batch]
        return self._read(before[-1]) if before else None

    def history(self) -> list[LoggedRules]:
        """All sets that are there, the oldest first. StateError when the log is damaged."""
        return [self._read(first) for first in self._checkpoint.batches(LOG)]

    def write(self, logged: LoggedRules) -> None:
        """Write a set that is newer than all others, and remove what no batch can ask for. Raises
        StateError when that fails."""
        rules = [
            {"source": one.places.source, "rule": to_yaml(one.rule)} for one in logged.rules.loaded
        ]
        content = {"format": _FORMAT, "number": logged.number, "rules": rules}
        self._checkpoint.write(f"{LOG}/{logged.batch}", json.dumps(content))
        for first in self._checkpoint.batches(LOG)[:-_MOST_SETS]:
            self._checkpoint.delete(f"{self._checkpoint.location}/{LOG}/{first}")

    def _read(self, first: int) -> LoggedRules:
        name = f"{LOG}/{first}"
        (content,) = self._checkpoint.parsed(name)
        try:
            if content["format"] != _FORMAT:
                raise StateError(
                    f"{self._checkpoint.location}/{name} has format {content['format']}, of another"
                    f" version of spark-cep; this one reads {_FORMAT}"
                )
            loaded = [
                one
                for entry in content["rules"]
                for one in load_rules(entry["rule"], entry["source"])
            ]
            return LoggedRules(first, int(content["number"]), RuleSet(tuple(loaded)))
        except (LookupError, TypeError, ValueError, RuleSetError) as error:
            reason = str(error).partition("\n")[0][:200]
            raise StateError(
                f"{self._checkpoint.location}/{name} is damaged ({reason}): {RESTORE}"
            ) from error
