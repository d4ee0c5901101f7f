"""Knowledge around a file: types of events, and the rules that test cases are about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from spark_cep.cases.document.files import rules_of
from spark_cep.cases.document.loading import CaseFile, examine_cases
from spark_cep.codecs.schema_files import SchemaFile, schemas_among
from spark_cep.errors import SparkCepError
from spark_cep.language.documents import Language, OpenDocument, language_of
from spark_cep.language.known.event_types import KnownTypes, together, types_of_file
from spark_cep.pattern.document.loading import LoadedRule


class Surroundings:
    """The schemas of events. ``schemas``: files and folders of them; without any, the schema files
    beside a rule count: the only one, or of each input the one of its name. ``of_config``: the
    types that a job reads, with the names of its inputs, which go before those of files."""

    def __init__(self, schemas: Sequence[Path] = ()) -> None:
        self.schemas = tuple(schemas)
        self.of_config: tuple[KnownTypes, tuple[str, ...]] | None = None
        #: By file, with the time and size that it had.
        self._read: dict[Path, tuple[tuple[int, int], KnownTypes]] = {}

    def document(self, path: Path, text: str) -> OpenDocument:
        """A text with what is known around its file."""
        language = language_of(path.name, text)
        rules = _rules(path, text) if language is Language.CASES else ()
        inputs = None
        if self.of_config is not None:
            known, inputs = self.of_config
        elif self.schemas:
            known = together(map(self._of_file, _files(self.schemas)))
        else:
            known = self._beside(path)
        return OpenDocument(str(path), text, language, known.types, known.docs, rules, inputs)

    def _beside(self, path: Path) -> KnownTypes:
        files = list(_files([path.parent]))
        if len(files) == 1:
            return self._of_file(files[0])
        return together(self._of_file(file, file.stem) for file in files)

    def _of_file(self, file: Path, name: str | None = None) -> KnownTypes:
        """The types of a schema file; none where it is none, which ``spark-cep check`` says."""
        try:
            status = SchemaFile.of(file).path.stat()
            stamp = status.st_mtime_ns, status.st_size
            before = self._read.get(file)
            if before is None or before[0] != stamp:
                before = stamp, _types_of(file)
                self._read[file] = before
        except OSError:
            return KnownTypes()
        known = before[1]
        if name is None:
            return known
        return KnownTypes({name: known.types.get(None, ())}, known.docs)


def _types_of(file: Path) -> KnownTypes:
    try:
        return types_of_file(file)
    except (ValueError, SparkCepError):
        return KnownTypes()


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    """The schema files among the paths, and in these folders."""
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        try:
            yield from schemas_among(path.iterdir())
        except OSError:
            continue


def _rules(path: Path, text: str) -> tuple[LoadedRule, ...]:
    """The rules that a case file is about, as far as they can be read."""
    files, _ = examine_cases(path, text)
    try:
        return tuple(one for file in files or [CaseFile(path, text, ())] for one in rules_of(file))
    except SparkCepError:
        return ()
