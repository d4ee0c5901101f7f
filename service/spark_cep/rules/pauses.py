"""Rules that are paused: they stay members of their set, and take no part until they are resumed.

A pause is a part of the rule set, so it is logged with the batch that is the first without the
rule, and outlives a restart.
"""

from __future__ import annotations

from dataclasses import dataclass, field


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
