"""Files that a person opens, as trials: rules, test cases, schemas, recorded events, a share."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path, PurePath
from typing import Any, Final

from spark_cep.cases.document.loading import Case, CaseFile, read_text
from spark_cep.cases.document.shape import CaseStepShape
from spark_cep.cases.document.values import duration_words, plain
from spark_cep.codecs.schema_files import AVRO, PROTOBUF
from spark_cep.documents.reading import read_documents
from spark_cep.errors import ConfigurationError
from spark_cep.pattern.document.sql_file import SUFFIX as SQL_SUFFIX
from spark_cep.pattern.document.sql_file import read_sql_file
from spark_cep.play.cells import cell_texts
from spark_cep.play.files.case_place import without_cases
from spark_cep.play.files.given_files import MOST_BYTES, GivenFile
from spark_cep.play.files.recorded_rows import recorded_rows
from spark_cep.play.reading import Schemas
from spark_cep.play.trial import MOST_ROWS, OF_ALL, RowKind, Trial, TrialRow
from spark_cep.rules.sources.folder import SUFFIXES as RULE_SUFFIXES
from spark_cep.rules.sources.folder import has_cases

_MOST_FILES: Final = 20
_ZIP: Final = ".zip"
_RULE_IN_JSON: Final = re.compile(r'^\s*\{[^{\[]*"(id|pattern|sql)"\s*:')


@dataclass
class _Sorted:
    """Files by what they are."""

    rules: list[GivenFile] = field(default_factory=list)
    cases: list[GivenFile] = field(default_factory=list)
    schemas: list[GivenFile] = field(default_factory=list)
    events: list[GivenFile] = field(default_factory=list)


@dataclass(frozen=True)
class Opened:
    """Opened files: a trial for each test case, or one. ``notes``: what was found out, for
    people."""

    trials: tuple[Trial, ...]
    notes: tuple[str, ...] = ()


def opened(files: Sequence[GivenFile], now: Trial) -> Opened:
    """Trials of files, whose content replaces that of the trial ``now``.

    Raises ConfigurationError where one cannot be read, and what reading events raises.
    """
    found = _sorted(_unpacked(files))
    trial, notes = now, tuple[str, ...]()
    if len(found.rules) > 1:
        names = ", ".join(each.name for each in found.rules)
        raise ConfigurationError(f"one rule file can be tried at a time; given are {names}")
    if found.rules:
        (rules,) = found.rules
        text = without_cases(rules.text, in_sql=rules.suffix == SQL_SUFFIX)
        trial = Trial(PurePath(rules.name).name, text)
    if found.schemas:
        trial = replace(trial, schemas=_schemas(found.schemas))
    cases = [one for each in (*found.cases, *found.rules) for one in _cases(each)]
    if found.events:
        trial, notes = recorded_rows(trial, found.events, given_schemas=bool(found.schemas))
    elif cases:
        return Opened(tuple(_of_case(trial, *each) for each in cases), notes)
    return Opened((trial,), notes)


def _unpacked(files: Sequence[GivenFile]) -> Iterator[GivenFile]:
    size = count = 0
    for each in files:
        for one in _members(each) if each.suffix == _ZIP else [each]:
            size, count = size + len(one.content), count + 1
            if size > MOST_BYTES or count > _MOST_FILES:
                raise ConfigurationError(
                    f"at most {MOST_BYTES >> 20} MiB in {_MOST_FILES} files can be opened;"
                    " `spark-cep backtest` runs files of any size"
                )
            yield one


def _members(packed: GivenFile) -> Iterator[GivenFile]:
    """The files of an archive, none of them read beyond what may be opened."""
    try:
        with zipfile.ZipFile(BytesIO(packed.content)) as archive:
            for each in archive.infolist():
                if not each.is_dir():
                    with archive.open(each) as member:
                        yield GivenFile(PurePath(each.filename).name, member.read(MOST_BYTES + 1))
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError) as error:
        raise ConfigurationError(f"{packed.name}: cannot be unpacked: {error}") from error


def _sorted(files: Iterable[GivenFile]) -> _Sorted:
    found = _Sorted()
    for each in files:
        if each.suffix == AVRO:
            found.schemas.append(each)
        elif each.suffix == PROTOBUF:
            found.schemas.append(_in_avro(each))
        elif each.suffix in RULE_SUFFIXES and has_cases(Path(each.name)):
            found.cases.append(each)
        elif each.suffix in RULE_SUFFIXES and (each.suffix != ".json" or _is_rule(each)):
            found.rules.append(each)
        else:
            found.events.append(each)
    return found


def _in_avro(file: GivenFile) -> GivenFile:
    """A ``.proto`` file, which imports none but Protobuf's own, as the page has schemas."""
    # Protobuf's library is slow to import.
    from spark_cep.codecs.protobuf.descriptors import compiled_text
    from spark_cep.codecs.protobuf.message_columns import columns_of

    advice = f"begin the page with the one that events are: spark-cep play {file.name}:MESSAGE"
    message = compiled_text(file.text, file.name, {}).message_called(None, file.name, advice)
    return GivenFile.of_schema(file.name, columns_of(message, file.name))


def _is_rule(file: GivenFile) -> bool:
    return bool(_RULE_IN_JSON.match(file.text)) and "\n{" not in file.text.strip()


def _schemas(files: Sequence[GivenFile]) -> dict[str, str]:
    if len(files) == 1:
        return {OF_ALL: _indented(files[0].text)}
    return {PurePath(each.name).stem: _indented(each.text) for each in files}


def _indented(schema: str) -> str:
    """A schema in the form in which a person reads it; one with lines has that."""
    if "\n" in schema.strip():
        return schema
    try:
        return json.dumps(json.loads(schema), indent=2)
    except ValueError:
        return schema


def _cases(file: GivenFile) -> Iterator[tuple[CaseFile, Case, Mapping[str, Any]]]:
    """The test cases of a file, each also as it is written."""
    in_sql = file.suffix == SQL_SUFFIX
    read = [read_sql_file(file.text, file.name)] if in_sql else read_documents(file.text, file.name)
    written = [
        case
        for document in read
        if isinstance(document.data, dict) and isinstance(document.data.get("cases"), list)
        for case in document.data["cases"]
    ]
    found = [(each, case) for each in read_text(Path(file.name), file.text) for case in each.cases]
    for (of_file, case), data in zip(found, written, strict=True):
        yield of_file, case, data


def _of_case(trial: Trial, file: CaseFile, case: Case, written: Mapping[str, Any]) -> Trial:
    """The trial that a test case is."""
    shape = case.shape
    schemas = Schemas.of(trial.schemas)
    rows = [
        row
        for step, data in zip(shape.events, written["events"], strict=True)
        for row in _rows(step, data, schemas)
    ]
    if len(rows) > MOST_ROWS:
        raise ConfigurationError(
            f"case `{case.name}` has {len(rows):,} events, at most {MOST_ROWS:,} are shown"
        )
    return replace(
        trial,
        rows=tuple(rows),
        rule=shape.rule or file.rule,
        case=case.name,
        start=shape.start,
        allowed_disorder=shape.allowed_disorder,
        event_time=shape.event_time,
    )


def _rows(step: str | CaseStepShape, written: Any, schemas: Schemas) -> Iterator[TrialRow]:
    """The rows of a step; one that sends several events is several."""
    if not isinstance(step, CaseStepShape):
        yield TrialRow(RowKind(step))
        return
    if step.send is None:
        kind = RowKind.CLOCK if step.clock is not None else RowKind.WATERMARK
        yield TrialRow(kind, _time(written[kind.value]))
        return
    name_input, of_type = step.input or "", step.of_type or ""
    kinds = schemas.columns(name_input, of_type)
    cells = cell_texts(step.send, kinds)
    for number in range(step.times or 1):
        at = _time(written.get("at", ""))
        name = step.name or ""
        if step.times is not None and step.times > 1:
            name = f"{name}-{number + 1}" if name else ""
            if number:
                at = "+" + duration_words((step.every or 0) * 1_000)
        yield TrialRow(RowKind.EVENT, at, cells, name, name_input, of_type)


def _time(written: object) -> str:
    return str(plain(written))
