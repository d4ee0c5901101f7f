"""Reads the events of a key, and writes the case file, its schemas and its expectation."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from spark_cep.cases.document.files import suites
from spark_cep.cases.running.comparing import compared
from spark_cep.cases.running.outcome import outcome
from spark_cep.cases.writing.accepting import accept
from spark_cep.cases.writing.case_text import CaseEvent, CaseHeader, case_text
from spark_cep.cases.writing.masking import Masking
from spark_cep.cases.writing.tapping import (
    TappedEvent,
    disorder_of,
    event_at,
    event_time_column,
    tapped_events,
)
from spark_cep.cli.authoring.checking import rule_named
from spark_cep.cli.saving import save
from spark_cep.cli.trying.events import recorded_events, rules_to_run
from spark_cep.codecs.registry.event_types import EventType
from spark_cep.config import Settings, load
from spark_cep.documents.nearest import instead
from spark_cep.errors import ConfigurationError
from spark_cep.model import Coordinates
from spark_cep.pattern.document.loading import LoadedRule
from spark_cep.recorded.events import RecordedEvents, Window
from spark_cep.recorded.opening import window_of
from spark_cep.rules.rule_set import RuleSet
from spark_cep.rules.sources.folder import OF_CASES


@dataclass(frozen=True)
class Tap:
    """The options of the command, by their names."""

    rule: str
    key: str | None
    event: str | None
    output: Path
    rules: Path | None
    files: tuple[str, ...]
    config: Path | None
    start: str | None
    end: str | None
    schemas: tuple[str, ...]
    event_times: tuple[str, ...]
    mask: tuple[str, ...]


@dataclass(frozen=True)
class WrittenCase:
    """The case file that was written. ``events``: how many; ``expected``: in words."""

    events: int
    expected: str
    notes: tuple[str, ...]


def write_case(asked: Tap) -> WrittenCase:
    """Write the case. Raises ConfigurationError where there are no such events, or an option is
    wrong, and what reading the events raises."""
    _check(asked)
    settings = None if asked.config is None else load(asked.config)
    loaded = _rule(asked, settings)
    with ExitStack() as stack:
        events, key = _events(asked, loaded, settings, stack)
        seen = tapped_events(events, loaded.rule, key)
        masking = Masking(asked.mask)
        masked = [replace(each, event=_masked(each.event, masking)) for each in seen]
        _check_masks(asked, masking, seen)
        column = event_time_column(events, masked)
        schemas = dict(_schemas(asked, events, loaded))
    disorder = disorder_of(masked) if settings is None else settings.time.allowed_disorder
    for file, text in schemas.values():
        save(text, file)
    rules = asked.rules
    if rules is None:
        rules = asked.output.with_name(f"{_name(asked.output)}.yaml")
        save(loaded.text, rules)
    last = max(each.event.time for each in masked)
    shown = "masked" if asked.mask else repr(key)
    written = CaseHeader(
        name=f"{asked.rule}, as it was seen",
        comment=f"What {_sources(asked)} had of rule {asked.rule}, key {shown}.",
        rules=os.path.relpath(rules, asked.output.parent),
        rule=asked.rule,
        schemas=_references(schemas),
        event_time=column,
        allowed_disorder_ms=disorder,
        clock=_decided(loaded, last),
    )
    save(case_text(written, [each.event for each in masked]), asked.output)
    return WrittenCase(len(masked), _accepted(asked.output), events.notes)


def _check(asked: Tap) -> None:
    if asked.config is None and asked.rules is None:
        raise ConfigurationError("say where the rule is: --rules FILE, or --config of a job")
    if asked.key is not None and asked.event is not None:
        raise ConfigurationError("give --key or --event, not both: the event has the key")
    if not asked.output.stem.endswith(OF_CASES):
        raise ConfigurationError(
            f"--output {asked.output}: the name of a case file ends with {OF_CASES}.yaml"
        )
    if asked.output.exists():
        raise ConfigurationError(f"--output {asked.output}: there is such a file already")


def _rule(asked: Tap, settings: Settings | None) -> LoadedRule:
    return rule_named(rules_to_run(asked.rules, settings), asked.rule)


def _events(
    asked: Tap, loaded: LoadedRule, settings: Settings | None, stack: ExitStack
) -> tuple[RecordedEvents, str | None]:
    """The events, and the key that is meant."""

    def opened(window: Window) -> RecordedEvents:
        return recorded_events(
            RuleSet((loaded,)), asked.files, settings, asked.schemas, asked.event_times, window,
            stack,
        )  # fmt: skip

    window = window_of(asked.start, asked.end)
    events = opened(window)
    if asked.event is None:
        if loaded.rule.key and asked.key is None:
            raise ConfigurationError(
                f"rule {loaded.rule.id} has a key: say which with --key, or an event that has it"
                " with --event"
            )
        return events, asked.key
    event = event_at(events, loaded.rule, _coordinates(asked.event))
    span = loaded.rule.within.max_ms
    if window.is_all and span is not None and event.recorded_at is not None:
        span += 0 if settings is None else settings.time.allowed_disorder
        events = opened(Window(event.recorded_at - span, event.recorded_at + span + 1))
    return events, event.key


def _coordinates(text: str) -> Coordinates:
    topic, *numbers = text.rsplit("/", 2)
    if len(numbers) != 2 or not all(each.isdecimal() for each in numbers):  # noqa: PLR2004
        raise ConfigurationError(
            f"--event {text}: allowed is TOPIC/PARTITION/OFFSET, as logins/0/1200; of a file"
            " FILE/0/LINE, or its record from 0 on where it has no lines"
        )
    return Coordinates(topic, *map(int, numbers))


def _masked(event: CaseEvent, masking: Masking) -> CaseEvent:
    return replace(event, columns=masking.masked(event.columns))


def _check_masks(asked: Tap, masking: Masking, seen: Sequence[TappedEvent]) -> None:
    """Refuse a mask that hides nothing: its name may be mistyped."""
    known = dict.fromkeys(name for each in seen for name in each.event.columns)
    for column in asked.mask:
        if column not in masking.met:
            raise ConfigurationError(
                f"--mask: no event has a column {column!r}; {instead(column, known, 'columns')}"
            )


def _schemas(
    asked: Tap, events: RecordedEvents, loaded: LoadedRule
) -> Iterator[tuple[str, tuple[Path, str]]]:
    """By input, the file of its schema and its text."""
    wanted = loaded.rule.events
    texts: dict[str, list[object]] = {}
    for kind in events.format.types:
        if isinstance(kind, EventType) and (not wanted or kind.input in wanted):
            texts.setdefault(kind.input, []).append(json.loads(kind.reader.text))
    for name, several in texts.items():
        file = asked.output.with_name(f"{_name(asked.output)}.{name}.avsc")
        schema = several[0] if len(several) == 1 else several
        yield name, (file, json.dumps(schema, indent=2) + "\n")


def _references(schemas: Mapping[str, tuple[Path, str]]) -> str | dict[str, str]:
    files = {name: file.name for name, (file, _) in schemas.items()}
    return next(iter(files.values())) if len(files) == 1 else files


def _decided(loaded: LoadedRule, last: int) -> int | None:
    """The time at which everything that the events began is decided."""
    within = loaded.rule.within
    longest = max(filter(None, (within.max_ms, within.gap_ms)), default=None)
    return None if longest is None else last + longest * 1_000


def _accepted(file: Path) -> str:
    """Run the case, and write what it finds as what is expected; returns that in words."""
    (suite,) = suites([file], {})
    (case,) = suite.file.cases
    accept([outcome(suite, case)])
    (suite,) = suites([file], {})
    (case,) = suite.file.cases
    counts = {kind: len(found) for kind, found in compared(case.shape.expect).items()}
    said = [_counted(count, kind) for kind, count in counts.items() if count]
    return f"expects {', '.join(said) or 'none'}"


def _counted(count: int, kind: str) -> str:
    name = kind.replace("_", " ")
    if count == 1 and name != "late":
        name = name.removesuffix("es" if name.endswith("ches") else "s")
    return f"{count} {name}"


def _sources(asked: Tap) -> str:
    if asked.files:
        return ", ".join(asked.files)
    return f"the topics of {asked.config}"


def _name(file: Path) -> str:
    return file.stem[: -len(OF_CASES)]
