"""Rules that are paused: they stay members of their set, and take no part until they are resumed.

A pause is a part of the rule set, so it is logged with the batch that is the first without the
rule, and outlives a restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from spark_cep.pattern.tree import Rule


@dataclass(frozen=True, slots=True)
class Pause:
    """Why a rule takes no part: ``reason``, and who said so. ``version``: the one that is paused;
    ``None``: whichever there is. ``lifted_from``: the offset of overrides from which any record of
    the rule ends the pause (``None``: it is an override itself), and ``lifted_in`` the id of their
    topic, in any other of which each one does."""

    reason: str
    by: str
    version: int | None = None
    lifted_from: int | None = None
    lifted_in: str | None = field(default=None, repr=False)

    def holds(self, rule: Rule) -> bool:
        """Tell whether it is a pause of this version."""
        return self.version in (None, rule.version)

    def as_json(self) -> dict[str, Any]:
        """For the log of rule sets."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Pause:
        """From the log of rule sets."""
        lifted_in = value.get("lifted_in")
        return cls(value["reason"], value["by"], value["version"], value["lifted_from"], lifted_in)


def holding(pauses: Mapping[str, Pause], rules: Iterable[Rule]) -> dict[str, Pause]:
    """Those of ``pauses``, by rule id, that are of one of ``rules``."""
    found = ((rule, pauses.get(rule.id)) for rule in rules)
    return {rule.id: pause for rule, pause in found if pause is not None and pause.holds(rule)}
