"""A cache of compiled code that was filled beforehand and cannot be written, as in the image.

Numba passes over a folder that it cannot write, and compiles again in every process. With
``NUMBA_CACHE_LOCATOR_CLASSES`` naming :class:`PreparedCache` and ``NUMBA_CACHE_DIR`` the folder, it
reads what is there. Code for another processor or version is not found, and cannot be kept: see
:func:`spark_cep.pipeline.compiled_code.prepare`. The folder's owner is trusted: see
``docs/security.md``.
"""

from __future__ import annotations

import os
from pathlib import Path

from numba.core.caching import UserProvidedCacheLocator


class PreparedCache(UserProvidedCacheLocator):
    """The folder ``NUMBA_CACHE_DIR``, also where it is read-only."""

    def ensure_cache_path(self) -> None:
        """Raise OSError when there is no such folder, and none can be made."""
        path = Path(self.get_cache_path())  # type: ignore[no-untyped-call]
        if not (path.is_dir() and os.access(path, os.R_OK | os.X_OK)):
            super().ensure_cache_path()  # type: ignore[no-untyped-call]
