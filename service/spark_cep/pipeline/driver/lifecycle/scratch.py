"""A run's own scratch folder, which does not outlive the run by much, however it ends.

Shuffle files, working copies of the state and unpacked libraries are worth nothing after the run.
Spark removes them as it ends; killed, it cannot, and a pod that is started again and again would
fill its disk. So each run has a folder of its own, held by a lock that goes with the process, and
removes those that nobody holds any more.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from spark_cep.config import Settings, reveal
from spark_cep.errors import StartError
from spark_cep.observability.logs import logger

_log = logger(__name__)

_PREFIX = "spark-cep-"
_LOCK = "lock"
_LOCAL_DIRS = "SPARK_LOCAL_DIRS"


@contextmanager
def scratch_folder(settings: Settings) -> Iterator[Path]:
    """A folder for this run, below the first of Spark's local directories. Where Spark runs in this
    process alone, its own files go there too, and into one below each other local directory.

    Raises StartError when one of them cannot be written.
    """
    given = os.environ.get(_LOCAL_DIRS)
    with ExitStack() as held:
        folders = [held.enter_context(_held_folder(root)) for root in _roots(settings, os.environ)]
        if settings.spark.master.startswith("local"):
            # Spark takes this before its setting.
            os.environ[_LOCAL_DIRS] = ",".join(map(str, folders))
            held.callback(_set_again, given)
        yield folders[0]


def _roots(settings: Settings, environment: Mapping[str, str]) -> list[Path]:
    configured = settings.spark.conf.get("spark.local.dir")
    texts = environment.get(_LOCAL_DIRS) or (reveal(configured) if configured else "")
    return [Path(text) for text in texts.split(",") if text] or [Path(tempfile.gettempdir())]


@contextmanager
def _held_folder(root: Path) -> Iterator[Path]:
    try:
        root.mkdir(parents=True, exist_ok=True)
        _remove_left(root)
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=root))
        lock = _locked(folder / f".{_LOCK}", os.O_CREAT)
        # Only a file that is locked has the name by which others look for it.
        (folder / f".{_LOCK}").rename(folder / _LOCK)
    except OSError as error:
        raise StartError(
            f"{root}: no scratch folder can be made there: {error.strerror}; set spark.local.dir"
            f" (spark.conf) or {_LOCAL_DIRS} to a folder that can be written"
        ) from error
    try:
        yield folder
    finally:
        _remove(folder)
        if lock is not None:
            os.close(lock)


def _remove_left(root: Path) -> None:
    """Remove what runs of this user that were killed left behind."""
    for lock_file in root.glob(f"{_PREFIX}*/{_LOCK}"):
        try:
            if lock_file.parent.lstat().st_uid != os.geteuid():
                continue
            lock = _locked(lock_file)
        except OSError:
            # Of another user, or gone by now.
            continue
        if lock is not None:
            _remove(lock_file.parent)
            os.close(lock)


def _remove(folder: Path) -> None:
    """Remove a folder, as far as that goes: one that is nested too deep is not Spark's."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except RecursionError:
        _log.warning("scratch_folder_left", folder=str(folder))


def _locked(file: Path, flags: int = 0) -> int | None:
    """The open, locked file; ``None`` when another process has it. Raises OSError."""
    handle = os.open(file, os.O_RDWR | flags, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle


def _set_again(given: str | None) -> None:
    if given is None:
        os.environ.pop(_LOCAL_DIRS, None)
    else:
        os.environ[_LOCAL_DIRS] = given
