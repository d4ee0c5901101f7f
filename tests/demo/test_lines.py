"""Output records, progress and summary as text."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

from rich.console import Console

from examples.demo.arrivals import Arrival, count
from examples.demo.expected import Counts
from examples.demo.metrics import Progress, read_progress
from examples.demo.screen import Screen, Status, _panel, one_line
from examples.demo.summary import Result, tables
from spark_cep.watch.result_line import clock, line

NINE = datetime(2025, 3, 3, 9, tzinfo=UTC)


def _at(seconds: float) -> datetime:
    return NINE + timedelta(seconds=seconds)


def _steps(**steps: list[float]) -> list[dict[str, Any]]:
    return [
        {"step": name, "events": [{"time": _at(second)} for second in seconds]}
        for name, seconds in steps.items()
    ]


def _match(**changes: Any) -> Arrival:
    value = {
        "rule_id": "brute-force",
        "key": "mallory",
        "time": _at(17.5),
        "measures": {"failures": 3, "first_ip": "203.0.113.1", "first": "2025-03-03T09:00:06.250Z"},
        "steps": _steps(fail=[6.25, 8, 11], ok=[17.5]),
    }
    return Arrival("match", "mallory", value | changes, {})


def test_a_match() -> None:
    """Rule, key, steps with their times, measures."""
    assert line(_match()).text() == (
        "match        brute-force     mallory  3 × fail 09:00:06.250 to 09:00:11, ok 09:00:17.500"
        "   failures=3 first_ip=203.0.113.1 first=09:00:06.25"
    )


def test_a_match_by_absence() -> None:
    """The time until which nothing came stands in place of a last event."""
    found = line(_match(time=_at(600), measures={"amount": "59.90"}, steps=_steps(placed=[0])))
    assert found.story == "placed 09:00:00, nothing more by 09:10:00   amount=59.90"


def test_a_timeout() -> None:
    """The deadline, and whether it had matched before."""
    value = {
        "rule_id": "cost-timeout",
        "key": None,
        "deadline": _at(10),
        "already_matched": True,
        "measures": {"first_cost": 150.0, "last_cost": None},
        "steps": _steps(start=[0]),
    }
    found = line(Arrival("timeout", None, value, {}))
    assert found.key == "-"
    assert found.story == (
        "start 09:00:00, not complete by 09:00:10, had matched before"
        "   first_cost=150 last_cost=null"
    )


def test_a_late_event() -> None:
    """How late it was, from the headers, and the fields that are plain."""
    time = int(_at(102).timestamp() * 1000)
    headers = {
        "spark-cep-topic": "logins",
        "spark-cep-event-time": str(time),
        "spark-cep-watermark": str(time + 61_499),
    }
    value = {"user_id": "peggy", "event_type": "login_fail", "ts": _at(102), "device": None}
    assert line(Arrival("late", "peggy", value, headers)).text() == (
        "late         logins          peggy    09:01:42 came 1 minute 1 second after the watermark:"
        " user_id=peggy event_type=login_fail"
    )


def test_a_dead_letter() -> None:
    """Coordinates, reason, detail."""
    value = {
        "topic": "logs",
        "partition": 1,
        "offset": 33,
        "reason": "not_framed",
        "detail": "the value begins with byte 0x7b, not with 0x00",
    }
    assert line(Arrival("dead letter", None, value, {})).text() == (
        "dead letter  logs            -        not_framed (partition 1, offset 33):"
        " the value begins with byte 0x7b, not with 0x00"
    )


def test_times_of_day_show_fractions_only_where_there_are_some() -> None:
    """From a datetime as from milliseconds."""
    assert clock(_at(1)) == clock(int(_at(1).timestamp() * 1000)) == "09:00:01"
    assert clock(_at(1.05)) == "09:00:01.050"


def test_output_records_are_counted_by_what_they_are() -> None:
    """By rule and key, topic, reason."""
    counts = Counts()
    count(counts, _match())
    count(counts, _match())
    count(counts, Arrival("late", None, {}, {"spark-cep-topic": "logs"}))
    count(counts, Arrival("dead letter", None, {"reason": "undecodable"}, {}))
    assert counts.matches == {("brute-force", "mallory"): 2}
    assert counts.late == {"logs": 1}
    assert counts.dead_letters == {"undecodable": 1}
    assert counts.total == 4


def test_progress_is_read_from_the_metrics_page() -> None:
    """Counters with labels, sums, and a watermark in seconds."""
    page = (
        "# TYPE spark_cep_records_consumed_total counter\n"
        'spark_cep_records_consumed_total{topic="logs"} 12.0\n'
        'spark_cep_records_consumed_total{topic="logins"} 3.0\n'
        "# TYPE spark_cep_batches_total counter\n"
        'spark_cep_batches_total{result="done"} 4.0\n'
        'spark_cep_batches_total{result="failed"} 1.0\n'
        "# TYPE spark_cep_watermark_timestamp_seconds gauge\n"
        "spark_cep_watermark_timestamp_seconds 1.740992397999e+09\n"
        "# TYPE spark_cep_events_waiting gauge\n"
        "spark_cep_events_waiting 3.0\n"
    )
    found = read_progress(page)
    assert found.read == {"logs": 12, "logins": 3}
    assert found.batches == 5
    assert found.watermark == 1_740_992_397_999
    assert found.waiting == 3
    assert read_progress("") == Progress()


def _result(**changes: Any) -> Result:
    made: dict[str, Any] = {
        "sent": Counter(logs=5),
        "sent_tombstones": Counter(),
        "progress": Progress(read=Counter(logs=5)),
        "expected": Counts(matches=Counter({("log-anomaly", "1001"): 15})),
        "found": Counts(matches=Counter({("log-anomaly", "1001"): 15})),
    }
    return Result(**made | changes)


def test_counts_that_differ_are_named() -> None:
    """One sentence each; none when all is as expected."""
    assert _result().differences() == []
    wrong = _result(
        progress=Progress(read=Counter(logs=4)),
        found=Counts(
            matches=Counter({("log-anomaly", "1001"): 14}), dead_letters=Counter(undecodable=1)
        ),
    )
    assert wrong.differences() == [
        "records read from logs: expected 5, found 4",
        "matches of log-anomaly for 1001: expected 15, found 14",
        "dead letters for undecodable: expected 0, found 1",
    ]


def test_the_summary_shows_expected_and_found() -> None:
    """A row that differs says so."""
    out = StringIO()
    console = Console(file=out, width=120)
    found = Counts(matches=Counter({("log-anomaly", "1001"): 14}))
    for table in tables(_result(found=found)):
        console.print(table)
    text = out.getvalue()
    assert "log-anomaly: matches" in text
    row = next(row for row in text.splitlines() if row.startswith("log-anomaly: matches"))
    assert row.split()[2:] == ["15", "14", "differs"]


def test_without_a_terminal_there_are_plain_lines() -> None:
    """No control characters, and no line is broken."""
    out = StringIO()
    screen = Screen(console=Console(file=out, width=40))
    with screen.waiting("…"), screen.progress():
        screen.arrived(line(_match()))
        screen.say("done")
    assert "\x1b" not in out.getvalue()
    assert len(out.getvalue().splitlines()) == 2


def test_progress_in_one_line() -> None:
    """Counters and the watermark."""
    status = Status(
        "2/6",
        Counter(logs=7),
        Progress(read=Counter(logs=5), watermark=int(_at(40).timestamp() * 1000), waiting=3),
    )
    assert one_line(status) == (
        "wave 2/6, produced 7, read 5, matches 0, timeouts 0, late 0, dead letters 0,"
        " watermark 09:00:40, 3 events wait for it"
    )


def test_a_terminal_shows_how_many_events_wait_for_the_watermark() -> None:
    """Beside the watermark that they wait for."""
    out = StringIO()
    progress = Progress(read=Counter(logs=5), watermark=int(_at(40).timestamp() * 1000), waiting=3)
    sent = Counter(logs=7, logins=0, sensors=0, orders=0)
    Console(file=out, width=120).print(_panel(Status("2/6", sent, progress), 8.0))
    rows = [line.split() for line in out.getvalue().splitlines()]
    assert ["logs", "7", "5", "matches", "0", "watermark", "09:00:40"] in rows
    assert any(row[-6:] == ["events", "that", "wait", "for", "it", "3"] for row in rows)
