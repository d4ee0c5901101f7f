"""What few rows do not reach by themselves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from spark_cep.matcher.row_pattern import matcher


@pytest.fixture(autouse=True, scope="module")
def _tried_is_stored() -> Iterator[None]:
    """Where attempts have failed is stored however few rows and instructions they have."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matcher, "_REPEATED", 0)
        yield
