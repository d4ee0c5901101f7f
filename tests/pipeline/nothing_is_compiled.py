"""A plugin of pytest (``-p tests.pipeline.nothing_is_compiled``): whatever is compiled after
:func:`spark_cep.pipeline.compiled_code.prepare` is an error, as if the image's folder were left
out."""

from __future__ import annotations

from contextlib import ExitStack

from numba.core.caching import IndexDataCacheFile

from spark_cep.columns.compilation import all_kept
from spark_cep.pipeline.compiled_code import prepare

_all = ExitStack()


def _refuse(*_: object) -> None:
    raise OSError("a function is compiled that was not prepared")


def pytest_configure() -> None:
    """From now on."""
    prepare()
    IndexDataCacheFile.save = _refuse  # type: ignore[method-assign]
    _all.enter_context(all_kept())


def pytest_unconfigure() -> None:
    """No more."""
    _all.close()
