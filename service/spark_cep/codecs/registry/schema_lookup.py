"""Questions to the registry about unknown schema ids, by the decoding task that meets them.

Records with such an id are dead letters, which must cost a request to the registry and no more:
anybody who may write to a topic can make up ids. An id that the registry knows is another matter,
since the plan has to be built again for its schema.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from spark_cep.codecs.registry.schema_ids import SchemaId
from spark_cep.codecs.registry.settings import RegistrySettings
from spark_cep.errors import SparkCepError

if TYPE_CHECKING:
    from spark_cep.codecs.registry.registry import Registry

#: Ids have four bytes in the framing, and are Java's ints in every registry.
LARGEST_REGISTERED: Final = 2**31 - 1
#: How long the answer that an id is not known holds: it may be registered later.
FORGOTTEN_AFTER_SECONDS: Final = 30.0
#: In one task; of more ids the ones with the most records are asked for.
MOST_ASKED: Final = 1_000
_AT_THE_SAME_TIME: Final = 8
_MOST_REMEMBERED: Final = 100_000
_ANSWER_SECONDS: Final = 5.0

#: By registry and id, when this Python worker was told that there is no such schema.
_unknown: dict[tuple[str, SchemaId], float] = {}
_registries: dict[RegistrySettings, Registry] = {}


@dataclass(frozen=True)
class Answers:
    """``open``: ids that have a schema, or that the registry did not answer for. ``not_asked``: ids
    that it was not asked for, which are taken for unknown like all others. ``asked``: how many
    requests there were."""

    open: frozenset[SchemaId]
    not_asked: frozenset[SchemaId]
    asked: int


@dataclass(frozen=True)
class SchemaLookup:
    """Asks one registry; picklable."""

    settings: RegistrySettings

    def ask(self, ids: Counter[SchemaId], most: int) -> Answers:
        """Return the answers about ``ids``, given with the number of records of each; at most
        ``most`` ids are asked for. It raises nothing: the driver finds out why there was no
        answer."""
        now, url = time.monotonic(), self.settings.url
        wanted = [
            each
            for each, _ in ids.most_common()
            if (not isinstance(each, int) or each <= LARGEST_REGISTERED)
            and now - _unknown.get((url, each), -math.inf) >= FORGOTTEN_AFTER_SECONDS
        ]
        asked = wanted[:most]
        missing = self._missing(asked)
        for each in missing:
            _unknown.pop((url, each), None)
            # The oldest goes.
            if len(_unknown) >= _MOST_REMEMBERED:
                del _unknown[next(iter(_unknown))]
            _unknown[url, each] = now
        return Answers(frozenset(asked) - missing, frozenset(wanted[most:]), len(asked))

    def _missing(self, ids: Sequence[SchemaId]) -> frozenset[SchemaId]:
        missing: set[SchemaId] = set()
        if not ids:
            return frozenset()
        with suppress(SparkCepError), ThreadPoolExecutor(_AT_THE_SAME_TIME) as pool:
            registry = self._registry()
            for first in range(0, len(ids), _AT_THE_SAME_TIME):
                several = ids[first : first + _AT_THE_SAME_TIME]
                known = list(pool.map(registry.knows, several))
                missing.update(
                    i for i, is_known in zip(several, known, strict=True) if not is_known
                )
        return frozenset(missing)

    def _registry(self) -> Registry:
        if self.settings not in _registries:
            # Its HTTP client takes a while to import, and most workers never need it.
            from spark_cep.codecs.registry.registry import Registry

            seconds = min(self.settings.timeout_seconds, _ANSWER_SECONDS)
            quick = replace(self.settings, max_attempts=1, timeout_seconds=seconds)
            _registries[self.settings] = Registry(quick)
        return _registries[self.settings]


@dataclass
class UnknownIds:
    """The schema ids that the plan does not know, in the records of one task. ``lookup``: asked
    about them (``None``: what is not known stays so). ``no_schema``: ids that the registry did not
    know when the driver asked, with when that was (ms since 1970); for a while that counts where
    there is no answer. ``planned_at``: when the task's batch was planned."""

    lookup: SchemaLookup | None = None
    no_schema: Mapping[SchemaId, int] = field(default_factory=dict)
    planned_at: int = 0
    _seen: set[SchemaId] = field(default_factory=set)
    _not_asked: set[SchemaId] = field(default_factory=set)
    _asked: int = 0

    def to_learn(self, ids: Counter[SchemaId]) -> frozenset[SchemaId]:
        """Return those of ``ids``, given with the number of records of each, that may have a
        schema; the registry is asked for each once."""
        fresh = Counter({each: count for each, count in ids.items() if each not in self._seen})
        self._seen |= fresh.keys()
        if self.lookup is None or not fresh:
            return frozenset()
        answers = self.lookup.ask(fresh, MOST_ASKED - self._asked)
        self._asked += answers.asked
        self._not_asked |= answers.not_asked
        # It may have been registered since; a batch that runs again comes to the same.
        known_since = self.planned_at - FORGOTTEN_AFTER_SECONDS * 1000
        return answers.open - {i for i, since in self.no_schema.items() if since > known_since}

    def explained(self, schema_id: SchemaId) -> str:
        """The words of a dead letter for a record of this id."""
        what = "id" if isinstance(schema_id, int) else "GUID"
        if schema_id in self._not_asked:
            return (
                f"schema {what} {schema_id} is not known, and the registry was not asked for it:"
                f" records had more than {MOST_ASKED:,} ids that are not known"
            )
        return f"the registry has no schema with {what} {schema_id}"
