"""The benchmark of the whole job, without the job: streams, rules, comparisons, reports."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench import history
from bench.comparison import Contender, Run, in_turn, profile, ratio
from bench.events import closing, events
from bench.latency import percentiles
from bench.outputs import DisagreementError, Found, check_once, check_same, line_of
from bench.plots import draw
from bench.report import BEGIN, END, put, stages, table, text_of_all
from bench.rules import document, shares, write_rules
from bench.scaling import later_rates, partition_cost
from bench.side import Side, SideFailedError
from bench.state_growth import fill, touch
from bench.testbed import PARTITIONS, TestBed, equal_batches
from spark_cep.compiler.rule_set import compile_rules
from spark_cep.config import Settings
from spark_cep.model import Coordinates, Match, Timeout
from spark_cep.pattern.document.loading import load_rules
from spark_cep.rules.sources.folder import read_rules
from tests.reference.local import LocalJob, Record

JAVA_RULES = Path(__file__).parents[2] / "bench/flink/src/main/java/bench/job/LoginRules.java"
RULES = ("fails", "relevant", "look_back", "open")


def found_by(documents: list[str], count: int, users: int) -> set[str]:
    """Lines of the matches and timeouts in the first events."""
    rules = [load_rules(text, "rules")[0].rule for text in documents]
    job = LocalJob(compile_rules(rules))
    records = [
        Record(Coordinates("logins", 0, number), event["ts"], event)
        for number, event in enumerate(events(count, users))
    ]
    job.advance(records, 2**50)
    found = [("m", one) for one in job.outputs.matches] + [
        ("t", one) for one in job.outputs.timeouts
    ]
    return {line_of(kind, as_record(one)) for kind, one in found}


def as_record(found: Match | Timeout) -> dict[str, Any]:
    """As it is written, as far as lines need it."""
    steps = [
        {
            "step": name,
            "events": [{"partition": e.at.partition, "offset": e.at.offset} for e in taken],
        }
        for name, taken in found.steps.items()
    ]
    return {"key": found.key, "steps": steps}


@pytest.mark.parametrize("name", RULES)
def test_each_rule_finds_something(name: str) -> None:
    """A comparison of nothing with nothing would say nothing."""
    kinds = {line[0] for line in found_by([document(name, 60_000)], 8_000, 40)}
    assert "m" in kinds


@pytest.mark.parametrize("name", RULES)
def test_no_rule_begins_with_the_closing_event(name: str) -> None:
    """It is the last of its partition: what it began would be decided by one side alone."""
    job = LocalJob(compile_rules([load_rules(document(name, 60_000), "rules")[0].rule]))
    event = closing(0, 1_000)
    job.advance([Record(Coordinates("logins", 0, 0), event["ts"], event)], 2**50)
    assert not job.outputs.timeouts


def test_rules_for_shares_find_together_what_one_rule_finds() -> None:
    """So the number of rules can change and the answer stays."""
    one = found_by([document("fails", 60_000)], 8_000, 40)
    ten = [document("fails", 60_000, share, n) for n, share in enumerate(shares(10))]
    assert found_by(ten, 8_000, 40) == one


@pytest.mark.parametrize("name", RULES)
def test_flink_has_each_rule_under_the_same_name(name: str) -> None:
    """And with the same steps in the same order."""
    ours = re.findall(r"step: (\w+)", document(name, 1_000))
    case = re.search(rf'case "{name}" ->(.+?)within', JAVA_RULES.read_text("utf-8"), re.DOTALL)
    assert case is not None
    assert re.findall(r'(?:begin|followedBy|next)\("(\w+)"', case.group(1)) == ours


@pytest.mark.parametrize("count", [1, 10, 1_000])
def test_shares_name_each_user_once(count: int) -> None:
    """The users are divided: each id ends with one of the shares."""
    parts = shares(count)
    assert len(parts) == count
    for event in events(200):
        assert sum(event["user_id"].endswith(part) for part in parts) == 1


def test_shares_of_another_number_are_refused() -> None:
    """The last digits make tens alone."""
    with pytest.raises(ValueError, match="not by 50"):
        shares(50)


def test_a_folder_of_rules_is_one_that_the_service_takes(tmp_path: Path) -> None:
    """Narrowed rules and those that no event touches, each with an id of its own."""
    write_rules(tmp_path, "fails", 60_000, shares(10), untouched=3)
    assert len({rule.id for rule in read_rules(tmp_path).rules}) == 13


def test_rounds_touch_as_many_keys_in_each_partition() -> None:
    """Each key of a round succeeds and then fails, in its partition, after all that came before."""
    keys, touched = 4_000, 400
    filled = list(fill(keys))
    assert [event["user_id"] for _, event in filled] == sorted({e["user_id"] for _, e in filled})
    one, other = (list(touch(keys, touched, number)) for number in (0, 1))
    assert Counter(partition for partition, _ in one) == dict.fromkeys(range(PARTITIONS), 200)
    assert {e["user_id"] for _, e in one} != {e["user_id"] for _, e in other}
    assert len({e["user_id"] for _, e in one}) == touched
    assert max(e["ts"] for _, e in filled) < min(e["ts"] for _, e in one)
    assert max(e["ts"] for _, e in one) < min(e["ts"] for _, e in other)
    homes = {event["user_id"]: partition for partition, event in filled}
    assert all(homes[event["user_id"]] == partition for partition, event in one)


@pytest.mark.parametrize(
    ("records", "most", "parts"),
    [
        (1_000_004, 1_000_000, 1),
        (5_000_004, 1_000_000, 5),
        (5_000_004, 2_000_000, 3),
        (50_004, 1_000_000, 1),
        (7, 2, 1),
    ],
)
def test_batches_are_equal(records: int, most: int, parts: int) -> None:
    """No batch is left for a few records, and none is larger than it may be but for some room."""
    size = equal_batches(records, most)
    room = 4 * PARTITIONS
    assert size * parts >= records > size * (parts - 1) - room * parts
    assert size <= max(most, room) + 2 * room


def test_runs_have_names_of_their_own_that_topics_may_have(tmp_path: Path) -> None:
    """Whatever the contender is called."""
    bed = TestBed(tmp_path, tmp_path, (0,), lambda _: None)
    bed.broker = SimpleNamespace(bootstrap="localhost:9092")  # type: ignore[assignment]
    bed.registry = SimpleNamespace(url="http://localhost")  # type: ignore[assignment]
    names = [bed.next_run("ours, 100 rules") for _ in range(2)]
    assert len(set(names)) == 2
    for name in names:
        settings = bed.settings(name, "logins", tmp_path, batch=10)
        assert Settings.model_validate(settings).outputs.topics.matches == f"{name}.matches"


def test_repetitions_are_counted_apart() -> None:
    """Lines are compared as sets; who may not repeat is told when it does."""
    once = Found.of(["m|a|x=0:1", "t|b|x=0:2"])
    twice = Found.of(["m|a|x=0:1", "t|b|x=0:2", "t|b|x=0:2"])
    check_same("ours", once, "Flink", twice)
    check_once("ours", once)
    with pytest.raises(DisagreementError, match="1 timeouts"):
        check_once("ours", twice)


def test_differences_are_shown() -> None:
    """Who found what the other did not."""
    with pytest.raises(DisagreementError, match=r"matches differ: 1 only by ours \(m\|a\|x=0:1\)"):
        check_same("ours", Found.of(["m|a|x=0:1"]), "Flink", Found.of([]))


def test_a_record_of_ours_is_the_line_of_flink() -> None:
    """Whatever the order of the steps."""
    record = {
        "key": "ann",
        "steps": [
            {"step": "ok", "events": [{"partition": 1, "offset": 9}]},
            {"step": "fail", "events": [{"partition": 1, "offset": n} for n in (3, 5)]},
        ],
    }
    assert line_of("m", record) == "m|ann|fail=1:3,1:5|ok=1:9"


def contender(name: str, seconds: list[float], lines: list[str], log: list[str]) -> Contender:
    """One whose runs take ``seconds``."""
    left = iter(seconds)

    def run() -> Run:
        log.append(name)
        return Run(100, next(left), {"stages": {"match": 1.0}}, Found.of(lines))

    return Contender(name, run, lambda: log.append(f"warm-up of {name}"))


def test_contenders_take_turns() -> None:
    """A warm-up before each turn; the first round does not count; the ratio is of medians."""
    log: list[str] = []
    results = in_turn(
        [
            contender("ours", [99.0, 1.0, 4.0, 2.0], ["m|a|x=0:1"], log),
            contender("theirs", [0.1, 4.0, 4.0, 8.0], ["m|a|x=0:1"], log),
        ],
        3,
        lambda _: None,
    )
    assert log == ["warm-up of ours", "ours", "warm-up of theirs", "theirs"] * 4
    found = ratio("main", results, "ours", "theirs", 1.5)
    assert (found.ours, found.theirs, found.ratio) == (50, 25, 2.0)
    assert (found.low, found.high) == (1.0, 4.0)


def test_other_outputs_end_the_comparison() -> None:
    """A figure of a job that finds something else says nothing."""
    log: list[str] = []
    sides = [
        contender("ours", [1.0], ["m|a|x=0:1"], log),
        contender("theirs", [1.0], ["m|a|x=0:2"], log),
    ]
    with pytest.raises(DisagreementError, match="matches differ"):
        in_turn(sides, 1, lambda _: None)


def test_a_stage_that_a_run_lacks_counts_as_nothing() -> None:
    """Medians over all runs, the longest stage first."""
    runs = [
        Run(1, 1.0, {"stages": stages})
        for stages in ({"a": 1.0}, {"a": 2.0, "b": 9.0}, {"a": 3.0, "b": 5.0})
    ]
    assert list(profile(runs).items()) == [("b", 5.0), ("a", 2.0)]


def test_the_cost_of_a_partition_is_the_slope() -> None:
    """Each partition adds so much to each batch."""

    def run(partitions: int) -> Run:
        later = 0.2 + 0.06 * partitions
        return Run(300, 99, {"batches": [{"seconds": each} for each in (90, later, later)]})

    runs = {n: [run(n)] for n in (2, 8, 32)}
    assert partition_cost(runs) == 60.0
    assert later_rates(runs) == [[2, 312], [8, 147], [32, 47]]


def test_columns_of_figures_stand_to_the_right() -> None:
    """Others to the left."""
    lines = table(["name", "ratio"], [["a", "**1.50**"], ["b", "2,000"]]).splitlines()
    assert lines[1] == "| --- | ---: |"


def test_small_stages_are_left_out() -> None:
    """And Spark's sum."""
    told = stages({"ours": {"match": 10.0, "pack": 0.05, "triggerExecution": 99.0}})
    assert "match" in told
    assert "pack" not in told
    assert "triggerExecution" not in told


FACTS = {
    "version": "1.2.3", "commit": "abc1234", "date": "2026-01-31", "cores": 2, "processor": "P",
    "memory_gib": 24, "spark": "4", "java": "17", "python": "3", "load_before": 0.1,
}  # fmt: skip
RATIO = {
    "name": "heap", "other": "Flink", "events": 5_000_000, "ours": 300_000, "theirs": 200_000,
    "ratio": 1.5, "low": 1.4, "high": 1.6, "aim": 1.5,
}  # fmt: skip
WAITS = percentiles([0.1, 0.2, 0.3])
BATCHES = {"count": 9, "events": 12, "milliseconds": 140, "stages": {"addBatch": 110}}
DOCUMENTS: dict[str, dict[str, Any]] = {
    "throughput": {
        "benchmark": "throughput", "runs_each": 3, "facts": FACTS, "ratios": [RATIO],
        "profile": {"match": 3.0},
    },
    "rules": {
        "benchmark": "rules", "runs_each": 3, "facts": FACTS, "ratios": [RATIO],
        "rates": {"ours": [[1, 300_000], [100, 200_000]], "Flink": [[1, 1], [100, 2]]},
        "milliseconds_for_each_untouched_rule": 0.5, "profiles": {"ours, 1 rules": {"match": 3.0}},
    },
    "state-growth": {
        "benchmark": "state-growth", "runs_each": 8, "facts": FACTS,
        "growth": [
            {"keys": n, "batch_seconds": 1.5, "bytes": {"ours": 60 * n, "Flink, hashmap": 99 * n},
             "memory_mib": {"workers": 300}}
            for n in (50_000, 1_000_000)
        ],
        "costs": [{"name": "a batch", "ratio": 1.4, "aim": 2.0}],
    },
    "input-partitions": {
        "benchmark": "input-partitions", "runs_each": 1, "facts": FACTS, "rate": 200,
        "input_partitions": [
            {"partitions": n, "batches": {**BATCHES, "milliseconds": n}} for n in (4, 1_000)
        ],
    },
    "latency": {
        "benchmark": "latency", "runs_each": 1, "facts": FACTS,
        "load": {"seconds": 60, "settling": 120, "disorder_ms": 0},
        "latency": [
            {
                "rate": 20_000, "job": job, "late_by": 0.01, "kept_up": job == "ours",
                "goal": [0.25, 0.45] if job == "ours" else None,
                "warm": dict.fromkeys(("event", "watermark", "written"), WAITS),
                "first_minute": {"event": {"count": 0}, "watermark": {}, "written": {}},
                "batches": batches,
            }
            for job, batches in (("ours", BATCHES), ("Flink", None))
        ],
    },
}  # fmt: skip


def test_the_report_replaces_what_stands_between_its_marks(tmp_path: Path) -> None:
    """Everything else of the page stays; plots are small and the same for the same figures."""
    past = tmp_path / "history.csv"
    history.append(past, "throughput", FACTS, [RATIO], 3)
    plots = draw(DOCUMENTS, past, tmp_path / "performance")
    assert plots.keys() == {"throughput", "rules", "state-growth", "latency", "history"}
    for name in plots.values():
        size = (tmp_path / "performance" / name).stat().st_size
        assert 1_000 < size < 200_000
    page = tmp_path / "performance.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    put(page, text_of_all(DOCUMENTS, plots))
    told = page.read_text()
    assert told.startswith("before\n")
    assert told.endswith("\nafter\n")
    assert "\nold\n" not in told
    assert (
        "| heap | 5,000,000 | 300,000 | Flink | 200,000 | **1.50** | 1.40 to 1.60 | 1.5 |" in told
    )
    assert "| 1,000,000 | 1.50 | 60 | 99 | 300 |" in told
    assert "performance/rules.svg" in told
    assert "| medians, ms, 200 events/s | 4 partitions | 1,000 partitions |" in told
    assert "| batch | 4 | 1,000 |" in told
    assert "| 20,000 | ours | 3 | 0.200 | " in told
    assert "| 0.200 | 0.25, 0.45 |" in told
    assert "Did not keep up: Flink at 20,000 events/s." in told
    assert "| addBatch | 110 |" in told


def test_a_page_without_marks_is_refused(tmp_path: Path) -> None:
    """Nothing is overwritten."""
    page = tmp_path / "performance.md"
    page.write_text("text")
    with pytest.raises(ValueError, match=re.escape(page.name)):
        put(page, "figures")
    assert page.read_text() == "text"


def test_history_grows_by_a_line_for_each_ratio(tmp_path: Path) -> None:
    """Under one head."""
    file = tmp_path / "history.csv"
    for _ in range(2):
        history.append(file, "quick", FACTS, [RATIO], 3)
    found = history.read(file)
    assert [(one["commit"], one["ratio_of"], one["ratio"]) for one in found] == [
        ("abc1234", "heap", "1.5")
    ] * 2


ECHO = """\
import json, sys
print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    if request.get("fail"):
        sys.exit("it went wrong")
    print(json.dumps({"got": request}), flush=True)
"""


def test_a_side_answers_until_it_is_closed(tmp_path: Path) -> None:
    """Each request has its answer; one that ends tells the end of its log."""
    with Side("echo", [sys.executable, "-c", ECHO], tmp_path / "log") as side:
        assert side.ask({"a": 1}, 10) == {"got": {"a": 1}}
        assert side.ask({"b": 2}, 10) == {"got": {"b": 2}}
        with pytest.raises(SideFailedError, match=r"(?s)echo ended.*it went wrong"):
            side.ask({"fail": True}, 10)
    side.close()


def test_a_side_that_cannot_start_is_told(tmp_path: Path) -> None:
    """At once, not at the first request."""
    with pytest.raises(SideFailedError, match="broken ended"):
        Side("broken", [sys.executable, "-c", "raise SystemExit(1)"], tmp_path / "log")


def test_figures_are_json() -> None:
    """What is kept can be read again."""
    assert json.loads(json.dumps(DOCUMENTS)) == DOCUMENTS
