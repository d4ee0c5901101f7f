"""The Java that Spark is run by, found as Spark's own script finds it, and its version."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Final

from spark_cep.errors import StartError

OLDEST: Final = 17
_NEEDED: Final = f"Java {OLDEST} or newer is needed"
_VERSION: Final = re.compile(r'"(?:1\.)?(\d+)[^"\n]*"')
_SECONDS: Final = 10.0


def check_java() -> Path:
    """Return the program. Raises StartError where there is none, or one that says beside itself
    that it is too old."""
    home = os.environ.get("JAVA_HOME")
    if home:
        program = Path(home) / "bin" / "java"
        if not program.is_file():
            raise StartError(
                f"{_NEEDED}; JAVA_HOME is {home}, and there is no bin/java in it: set it to the"
                " folder of an installed Java, or unset it to use the `java` on the PATH"
            )
    else:
        found = shutil.which("java")
        if found is None:
            raise StartError(
                f"{_NEEDED}, and none was found: install one, and put `java` on the PATH or set"
                " JAVA_HOME to its folder"
            )
        program = Path(found)
    with suppress(OSError, UnicodeDecodeError):
        release = (program.resolve().parent.parent / "release").read_text("utf-8")
        _check(program, re.search(r"^JAVA_VERSION=.*$", release, re.MULTILINE))
    return program


def check_version() -> Path:
    """Return the program that has told its version, which takes a moment. Raises StartError where
    it is too old."""
    program = check_java()
    with suppress(OSError, subprocess.TimeoutExpired):
        said = subprocess.run(
            [program, "-version"], check=False, capture_output=True, text=True, timeout=_SECONDS
        )
        _check(program, re.search(r"version .*", said.stderr))
    return program


def _check(program: Path, line: re.Match[str] | None) -> None:
    version = None if line is None else _VERSION.search(line[0])
    if version is not None and int(version[1]) < OLDEST:
        raise StartError(
            f"{_NEEDED}; {program} is Java {version[1]}: set JAVA_HOME to the folder of a newer one"
        )
