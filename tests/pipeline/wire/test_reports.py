"""Reports hold counts of a closed list, each with its own labels."""

from __future__ import annotations

from collections import Counter

import pytest

from spark_cep.errors import StateError
from spark_cep.packing import pack, unpack
from spark_cep.pipeline.wire.reports import Count, Report


def test_an_unknown_count_is_refused() -> None:
    """The message names it and what there is; nothing is dropped in silence."""
    content = unpack(Report(Counter({(Count.RECORDS, "t"): 1})).encode())
    content[0] = [["recrods", "t", 1]]
    with pytest.raises(StateError, match="no count 'recrods'; there are: records, bytes,"):
        Report.decode(pack(content))


@pytest.mark.parametrize("labels", [(), ("t", "0")])
def test_labels_are_the_counts_own(labels: tuple[str, ...]) -> None:
    """Too few or too many are refused where they are written, and where they are read."""
    key: tuple[Count, *tuple[str, ...]] = (Count.RECORDS, *labels)
    with pytest.raises(ValueError, match="records has the labels"):
        Report(Counter({key: 1})).encode()
    content = unpack(Report().encode())
    content[0] = [[*key, 1]]
    with pytest.raises(StateError, match="records has the labels"):
        Report.decode(pack(content))
