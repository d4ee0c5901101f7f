"""The archive of classes that ``spark-cep prepare`` makes, and that sessions use without being told
of it: where it is, and whether it still fits.

It is kept where compiled code is: in ``NUMBA_CACHE_DIR`` where that is set, else beside this
module, else in the user's cache folder. It fits the jars of one Spark at one path: the name of its
folder tells them apart.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Final

import pyspark

from spark_cep import __version__
from spark_cep.errors import StartError
from spark_cep.pipeline.spark.class_archive import archive, spark_jars
from spark_cep.pipeline.spark.java import check_java, check_version

_MADE_OF: Final = "made-of.txt"
_MAKERS: Final = [Path(__file__).with_name(name) for name in ("class_archive.py", "rehearsal.py")]
#: On a busy machine it takes minutes; a JVM that hangs is not waited for.
_SECONDS: Final = 900.0


def prepared_classes() -> Path | None:
    """The folder of the archive, if there is one that fits the Java and the jars of this machine,
    and that no other user could have made."""
    folders = [folder for folder in _places() if archive(folder) is not None]
    if not folders:
        return None
    try:
        made_of = _made_of()
    except StartError:
        return None
    for folder in folders:
        if _read(folder / _MADE_OF) == made_of and not _is_open(folder):
            return folder
    return None


def make_archive() -> Path:
    """Make the archive in the first of its places that can be written. StartError when that
    fails."""
    check_version()
    made_of, folder = _made_of(), _writable()
    # A process of its own: Java writes the archive at its end, and says more than is of interest.
    command = [sys.executable, "-P", "-m", "spark_cep.pipeline.spark.class_archive"]
    try:
        ran = subprocess.run(
            [*command, "--into", folder],
            check=False,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise StartError(f"{folder}: Java wrote none within {_SECONDS:.0f} s") from None
    made = archive(folder)
    if ran.returncode or made is None:
        said = [line for line in ran.stderr.splitlines() if line.strip()]
        raise StartError(f"{folder}: {said[-1] if said else 'Java wrote none'}")
    (folder / _MADE_OF).write_text(made_of, "utf-8")
    return made


def _places() -> list[Path]:
    """The folders in which an archive may be, the best first."""
    home = Path(pyspark.__file__).parent
    name = f"classes-{pyspark.__version__}-{zlib.crc32(os.fsencode(home)):08x}"
    given = os.environ.get("NUMBA_CACHE_DIR")
    if given:
        return [Path(given).absolute() / name]
    places = [Path(__file__).parent / "__pycache__" / name]
    # A user without an entry and without HOME has no such folder.
    with suppress(RuntimeError):
        of_user = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser().absolute()
        places.append(of_user / "spark-cep" / name)
    return places


def _is_open(folder: Path) -> bool:
    """Return whether other users can write a folder that the environment names; the other places
    are as safe as this code, or the user's own."""
    if not os.environ.get("NUMBA_CACHE_DIR"):
        return False
    # It loads Numba, for which Java would be launched later.
    from spark_cep.columns.compilation import open_to_others

    return open_to_others(folder)


def _writable() -> Path:
    refused: OSError | None = None
    for folder in _places():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / _MADE_OF).write_bytes(b"")
        except OSError as error:
            refused = error
        else:
            if not _is_open(folder):
                return folder
    if refused is not None:
        raise StartError(f"no folder for it can be written: {refused}")
    raise StartError(f"{_places()[0]} can be written by other users")


def _made_of() -> str:
    """Return what an archive made now fits: this version, what makes it, Java, and the jars in
    their order."""
    lines = [f"spark-cep {__version__}"]
    for file in (*_MAKERS, check_java().resolve(), *spark_jars()):
        found = file.stat()
        lines.append(f"{file} {found.st_size} {found.st_mtime_ns}")
    return "".join(f"{line}\n" for line in lines)


def _read(file: Path) -> str | None:
    try:
        return file.read_text("utf-8")
    except OSError:
        return None
