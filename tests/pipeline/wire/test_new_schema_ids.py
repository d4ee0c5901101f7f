"""Schema ids through the text of an exception."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_cep.pipeline.wire.new_schema_ids import NewSchemaIdsError, decode_ids


def report(error: NewSchemaIdsError) -> str:
    """Of Spark, in which the worker's text stands several times."""
    told = f"pyspark.errors.PythonException: Traceback …\n{type(error).__name__}: {error}\n"
    return f"Job aborted due to stage failure: {told}\n\tat org.apache.spark …\nCaused by: {told}"


@given(st.sets(st.integers(0, 2**32 - 1), min_size=1, max_size=1_000))
def test_ids_come_back(ids: set[int]) -> None:
    """All of them, in order, whatever is around them."""
    assert decode_ids(report(NewSchemaIdsError(ids))) == tuple(sorted(ids))


def test_other_failures_have_none() -> None:
    """Also one that only names the exception."""
    assert decode_ids("java.lang.OutOfMemoryError: NewSchemaIdsError") == ()


def test_half_a_text_is_refused() -> None:
    """It is not taken for fewer ids; but a whole one behind it counts."""
    whole = str(NewSchemaIdsError([7, 12, 130]))
    for cut in (whole[:-1], whole[:-5], whole[:-5] + ">"):
        with pytest.raises(ValueError, match="which its report does not hold whole"):
            decode_ids(cut)
        assert decode_ids(f"{cut} … {whole}") == (7, 12, 130)
