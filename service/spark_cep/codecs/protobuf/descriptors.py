"""Descriptors of messages: what a .proto file says, compiled by Protobuf's own compiler.

The compiler is in the package `grpcio-tools`, an extra; only what learns schemas needs it, which is
the driver. Tasks get a set of descriptors as bytes.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pool import DescriptorPool

from spark_cep.errors import (
    ConfigurationError,
    SchemaError,
    needs_extra,
    printable,
    shortened,
)

_MAIN = "schema.proto"
_COMPILER = "grpc_tools"
_SECONDS = 60
#: Beginnings of lines of the compiler that are no errors.
_OF_THE_LOG = ("WARNING: All log", "W0")
_LONGEST = 500


@dataclass(frozen=True)
class MessageFiles:
    """A .proto file with all that it imports, compiled: a FileDescriptorSet whose last file is the
    file itself."""

    data: bytes

    def messages(self) -> Iterator[tuple[tuple[int, ...], Descriptor]]:
        """The messages of the file and their indexes, those in other messages behind these."""
        return ((index, each) for index, each in self._all() if not _is_map_entry(each))

    def numbered(self) -> Iterator[tuple[tuple[int, ...], Descriptor]]:
        """The messages of the file and their numbers as AWS Glue's serializers count them: by full
        name, with the entries of maps."""
        names = sorted((each for _, each in self._all()), key=lambda each: each.full_name)
        return (((place,), each) for place, each in enumerate(names) if not _is_map_entry(each))

    def _all(self) -> Iterator[tuple[tuple[int, ...], Descriptor]]:
        pool, name = _pool(self.data)
        waiting: list[tuple[tuple[int, ...], Descriptor]] = [
            ((place,), each)
            for place, each in enumerate(pool.FindFileByName(name).message_types_by_name.values())
        ]
        while waiting:
            index, each = waiting.pop(0)
            yield index, each
            waiting += [((*index, place), one) for place, one in enumerate(each.nested_types)]

    def message_called(self, name: str | None, origin: str, advice: str) -> Descriptor:
        """The message of this full or short name; without one, the only message that is in no
        other. Raises SchemaError, with ``advice`` where there are several."""
        known = {message.full_name: message for _, message in self.messages()}
        if not known:
            raise SchemaError(f"{origin}: has no messages")
        if name is None:
            outer = [each for each in known.values() if each.containing_type is None]
            if len(outer) == 1:
                return outer[0]
            raise SchemaError(f"{origin} has the messages {', '.join(known)}; {advice}")
        found = [m for full, m in known.items() if name in (full, full.rpartition(".")[2])]
        if len(found) != 1:
            raise SchemaError(
                f"{origin} has {len(found) or 'no'} messages called {name}; it has"
                f" {', '.join(known)}"
            )
        return found[0]

    def message(self, name: str) -> Descriptor:
        """The message of this full name."""
        return _pool(self.data)[0].FindMessageTypeByName(name)

    def message_class(self, name: str) -> Any:
        """The class of the message of this full name."""
        return message_factory.GetMessageClass(self.message(name))


def _is_map_entry(message: Descriptor) -> bool:
    return bool(message.GetOptions().map_entry)


@lru_cache(maxsize=1_000)
def _pool(data: bytes) -> tuple[DescriptorPool, str]:
    files = descriptor_pb2.FileDescriptorSet.FromString(data).file
    pool = DescriptorPool()
    for each in files:
        pool.Add(each)
    return pool, files[-1].name


def compiled_file(file: Path) -> MessageFiles:
    """A .proto file, whose imports stand below its folder. Raises SchemaError, ConfigurationError
    where it cannot be read."""
    try:
        text = file.read_text("utf-8")
    except OSError as error:
        raise ConfigurationError(f"{file}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{file}: cannot be read: it is not UTF-8") from error
    return _compiled(text, str(file), {}, file.parent)


def compiled_text(text: str, origin: str, references: Mapping[str, str]) -> MessageFiles:
    """The text of a .proto file; ``references``: the texts of other files by the names that it
    imports. Raises SchemaError."""
    return _compiled(text, origin, references, None)


def _compiled(
    text: str, origin: str, references: Mapping[str, str], folder: Path | None
) -> MessageFiles:
    with needs_extra("protobuf", f"{origin}: compiling .proto files"):
        import_module(_COMPILER)
    with TemporaryDirectory(prefix="spark-cep-proto-") as name:
        here = Path(name)
        for path, content in references.items():
            _put(here, path, content, origin)
        _put(here, _MAIN, text, origin)
        made = here / "set.binpb"
        others = [] if folder is None else [f"-I{folder}"]
        command = [
            sys.executable, "-m", f"{_COMPILER}.protoc", f"-I{here}", *others,
            "--include_imports", f"--descriptor_set_out={made}", str(here / _MAIN),
        ]  # fmt: skip
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise SchemaError(f"{origin}: was not compiled within {_SECONDS} seconds") from None
        if done.returncode:
            told = done.stderr.replace(f"{here}/", "").replace(f"{_MAIN}:", "line ")
            lines = [line for line in told.splitlines() if not line.startswith(_OF_THE_LOG)]
            raise SchemaError(f"{origin}: {shortened(printable('; '.join(lines)), _LONGEST)}")
        return MessageFiles(made.read_bytes())


def _put(folder: Path, name: str, content: str, origin: str) -> None:
    """Write a file below a folder. Raises SchemaError for a name that leads out of it."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.name.endswith(".proto"):
        raise SchemaError(f"{origin}: a reference is called {name!r}, which is no .proto file")
    where = folder / path
    try:
        where.parent.mkdir(parents=True, exist_ok=True)
        where.write_text(content, "utf-8")
    except (OSError, ValueError) as error:
        # Of a registry, names and texts are anything.
        raise SchemaError(f"{origin}: {name!r} cannot be written to a file: {error}") from error
