"""Rules that are paused: they stay members of their set, and take no part until they are resumed.

A pause is a part of the rule set, so it is logged with the batch that is the first without the
rule, and outlives a restart.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause of a rule: ``reason``, and ``by`` whom. ``version``: the one that is paused;
    ``None``: all of them. ``lifted_from``: the offset in the topic of overrides from which on any
    record of the rule ends the pause; ``None``: the pause is an override itself. ``lifted_in``: the
    id of that topic; in a topic with another id every record of the rule ends the pause."""

    reason: str
    by: str
    version: int | None = None
    lifted_from: int | None = None
    lifted_in: str | None = field(default=None, repr=False)
