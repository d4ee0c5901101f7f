"""The format of a key group's state, and which batch wrote it; the format of the snapshots in it is
their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from spark_cep.errors import RESTORE, StateError, damaged_state

FORMAT: Final = 13
#: The name of the entry that is the value of the group.
GROUP: Final = "group"
#: Of a key group's state: digest of the offsets of the batch that wrote it.
WRITTEN_IN: Final = "written_in"


def check_format(stored: Mapping[str, Any]) -> None:
    """Refuse a key group's state of another format: StateError."""
    if not isinstance(stored, Mapping) or "format" not in stored:
        raise damaged_state("the value of a key group has another form")
    if stored["format"] != FORMAT:
        raise StateError(
            f"the checkpoint's state has format {stored['format']}, this version reads"
            f" {FORMAT}: start from a new checkpoint, or run the version that wrote it"
        )


def check_written(stored: Mapping[str, Any] | None, number: int, offsets_before: str) -> None:
    """Refuse what the batch before, which ends at ``offsets_before``, has not written of key group
    ``number``: StateError. Each batch writes all key groups, so files of the state that come from
    an older copy, or from another state partition, are told by it."""
    if stored is None:
        if offsets_before:
            raise StateError(
                f"the checkpoint's state has nothing of key group {number}, which every batch"
                " writes: a file of the state was replaced by one of another state partition:"
                f" {RESTORE}"
            )
        return
    check_format(stored)
    if stored.get(WRITTEN_IN) != offsets_before:
        raise StateError(
            f"the state of key group {number} was not written by the batch before, as the"
            " checkpoint's offsets have it: a file of the state or of the offsets was replaced by"
            f" one of another batch or copy: {RESTORE}"
        )
