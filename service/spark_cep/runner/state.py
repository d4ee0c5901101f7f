"""The state of key groups in memory, in the blocks that the job writes into its checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class GroupEntries:
    """The entries of one key group."""

    by_name: dict[str, bytes] = field(default_factory=dict)

    def get(self, names: Sequence[str]) -> list[bytes | None]:
        """The values of these names; ``None`` for those that there are not."""
        return [self.by_name.get(name) for name in names]

    def put(self, values: Sequence[tuple[str, bytes | None]]) -> None:
        """Write values, and remove the names without one."""
        for name, value in values:
            if value is None:
                self.by_name.pop(name, None)
            else:
                self.by_name[name] = value


@dataclass
class RunState:
    """The state of all key groups after so many ``batches``; plain bytes, to be kept anywhere."""

    batches: int
    groups: list[GroupEntries]

    @classmethod
    def empty(cls, key_groups: int) -> RunState:
        """Return the state of a run that begins."""
        return cls(0, [GroupEntries() for _ in range(key_groups)])

    def copy(self) -> RunState:
        """Return a copy that later batches do not change."""
        groups = [GroupEntries(dict(entries.by_name)) for entries in self.groups]
        return RunState(self.batches, groups)

    @property
    def written(self) -> str:
        """The name of the last batch, as the state of each key group has it."""
        return str(self.batches) if self.batches else ""
