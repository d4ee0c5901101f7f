"""Names of schemas through the text of an exception."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_cep.pipeline.wire.new_schemas import NewSchemasError, schemas_in

NAMES = st.integers(0, 2**32 - 1).map(str) | st.from_regex(r"[A-Za-z0-9_.:/+=-]+", fullmatch=True)


def report(error: NewSchemasError) -> str:
    """Of Spark, in which the worker's text stands several times."""
    told = f"pyspark.errors.PythonException: Traceback …\n{type(error).__name__}: {error}\n"
    return f"Job aborted due to stage failure: {told}\n\tat org.apache.spark …\nCaused by: {told}"


@given(st.sets(NAMES, min_size=1, max_size=1_000))
def test_names_come_back(names: set[str]) -> None:
    """All of them, in order, whatever is around them."""
    assert schemas_in(report(NewSchemasError(names))) == tuple(sorted(names))


@pytest.mark.parametrize("name", ["", "a,b", "a>", "two words", "line\n"])
def test_other_names_are_refused(name: str) -> None:
    """They would not come back."""
    with pytest.raises(ValueError, match="names of schemas are letters, digits and"):
        NewSchemasError(["a", name])


def test_other_failures_have_none() -> None:
    """Also one that only names the exception."""
    assert schemas_in("java.lang.OutOfMemoryError: NewSchemasError") == ()


def test_half_a_text_is_refused() -> None:
    """It is not taken for fewer names; but a whole one behind it counts."""
    whole = str(NewSchemasError(["7", "12", "130"]))
    for cut in (whole[:-1], whole[:-5], whole[:-5] + ">"):
        with pytest.raises(ValueError, match="which its report does not hold whole"):
            schemas_in(cut)
        assert schemas_in(f"{cut} … {whole}") == ("12", "130", "7")
