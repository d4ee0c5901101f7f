"""``spark-cep run --input``: the rules over files, with the results that a job would write; for a
first look, in one process."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from spark_cep.cli.terminal import (
    Verbosity,
    compilation_shown,
    note,
    out,
    print_warnings,
    verbosity,
)
from spark_cep.observability.logs import configure

if TYPE_CHECKING:
    from spark_cep.backtest.replay import ReplayedBatch
    from spark_cep.backtest.rows import Kind

_NAMES: Final = {
    "matches": "match",
    "match-rows": "match row",
    "timeouts": "timeout",
    "late": "late",
    "dead-letters": "dead letter",
}


@dataclass(frozen=True, slots=True)
class _Result:
    """A result as :mod:`~spark_cep.watch.result_line` shows it."""

    kind: str
    key: str | None
    value: Mapping[str, Any]
    headers: Mapping[str, str]


def run_over_files(
    files: Sequence[str],
    config: Path | None,
    rules: Path | None,
    schemas: Sequence[str] | None,
    event_times: Sequence[str] | None,
    *,
    as_json: bool,
) -> None:
    """Run rules over files, with the job's decoder and matcher, and print each result. At the end
    time goes as the settings say (``trigger.at_end_of_input``); without settings all that is open
    is decided."""
    from spark_cep.backtest.replay import Replay, run_settings
    from spark_cep.cli.trying.events import recorded_events, rules_to_run
    from spark_cep.config import load
    from spark_cep.recorded.events import Window

    # Results have the standard output for themselves.
    configure("debug" if verbosity.get() is Verbosity.VERBOSE else "warning", stream=sys.stderr)
    settings = None if config is None else load(config)
    chosen = rules_to_run(rules, settings)
    counts = Counter[str]()
    records = 0
    with ExitStack() as stack, compilation_shown():
        events = recorded_events(chosen, files, settings, schemas, event_times, Window(), stack)
        for each in events.notes:
            note(each)
        replay = Replay(chosen, events, run_settings(settings))
        print_warnings(replay.warnings)
        at_end = "decide" if settings is None else settings.trigger.at_end_of_input
        for batch in replay.run(at_end):
            records += batch.records
            for kind, line in _lines(batch, as_json=as_json):
                counts[kind] += 1
                sys.stdout.write(line + "\n")
        sys.stdout.flush()
    counted = ", ".join(f"{name.replace('-', ' ')}: {counts[name]:,}" for name in _NAMES)
    still = sum(replay.open_matches().counts.values())
    note(f"{records:,} records. {counted}; partial matches still open: {still:,}")


def _lines(batch: ReplayedBatch, *, as_json: bool) -> Iterator[tuple[str, str]]:
    """Yield the lines of a batch's results with their kinds, in the order of their times."""
    from spark_cep.backtest.rows import json_values, record_of, rows_of
    from spark_cep.cli.job.tail_text import result_text
    from spark_cep.watch.result_line import moment

    colour = out.is_terminal and not out.no_color
    found = [(kind, row, _result(kind, row)) for kind, row in rows_of(batch)]
    # Dead letters have no time in a file, and come first.
    found.sort(key=lambda each: 0.0 if (at := moment(each[2])) is None else at.timestamp())
    for kind, row, result in found:
        if as_json:
            value = json_values(record_of(kind), row)
            document = {"kind": result.kind.replace(" ", "_"), "key": result.key, "value": value}
            yield kind.value, json.dumps(document)
        else:
            yield kind.value, result_text(result, colour=colour)


def _result(kind: Kind, row: Mapping[str, Any]) -> _Result:
    from spark_cep.codecs.output.outputs import EVENT_TIME_HEADER, TOPIC_HEADER, WATERMARK_HEADER

    name = _NAMES[kind.value]
    if name != "late":
        return _Result(name, row.get("key"), row, {})
    headers = {
        TOPIC_HEADER: row["topic"],
        EVENT_TIME_HEADER: str(row["time"]),
        WATERMARK_HEADER: str(row["watermark"]),
    }
    return _Result(name, None, {"offset": row["offset"]}, headers)
