"""Values of the state as text, and back."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from spark_cep.pipeline.state.ascii_values import bytes_of, text_of


@given(st.binary(max_size=40))
@example(bytes(range(256)))
@example(b"\xff" * 7)
def test_any_bytes(data: bytes) -> None:
    """ASCII characters, eight for seven bytes at most."""
    text = text_of(data)
    assert text.isascii()
    assert len(text) == -(-len(data) * 8 // 7)
    assert bytes_of(text) == data
