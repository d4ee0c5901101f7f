"""State of another format is refused."""

from __future__ import annotations

import pytest

from spark_cep.errors import StateError
from spark_cep.pipeline.state.group_format import FORMAT, check_format


def test_only_the_own_format_is_read() -> None:
    """The message names both."""
    check_format({"format": FORMAT})
    with pytest.raises(StateError, match=f"has format {FORMAT - 1}, this version reads {FORMAT}"):
        check_format({"format": FORMAT - 1})
