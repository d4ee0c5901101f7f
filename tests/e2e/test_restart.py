"""A stop in the middle of partial matches: the job goes on from its checkpoint."""

from __future__ import annotations

import pytest

from spark_cep.pipeline.wire.reports import Count
from tests.e2e.outputs import found
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, at, sequence

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


def test_partial_matches_outlive_a_stop(scenario: Scenario) -> None:
    """Half of the stream, a stop as asked for, the other half: every match once, every timeout
    once, those that span the stop included, and no event counts as late."""
    stream = Stream(scenario)
    scenario.rule(sequence("abc", "a", "followed_by b", "followed_by c", within="1 minute"))
    scenario.rule(sequence("strict", "a", "next b"))
    with scenario.running():
        stream.send(("k", "a", 0), ("k", "b", 1), ("q", "a", 2), ("k", "a", 3), ("k", "x", 4))
        scenario.wait_for_records(5)
    assert scenario.outputs().of("abc") == ([], [])
    stream.send(("k", "b", 5), ("k", "c", 6), ("k", "x", 300))
    outputs = scenario.run()
    assert outputs.of("abc") == (
        [found("abc", "k", at(6), a=0, b=1, c=6), found("abc", "k", at(6), a=3, b=5, c=6)],
        [found("abc", "q", at(62), a=2)],
    )
    assert outputs.of("strict") == ([found("strict", "k", at(1), a=0, b=1)], [])
    assert (scenario.total(Count.RECORDS), outputs.late) == (8, [])


def test_a_checkpoint_is_its_owners_alone(scenario: Scenario) -> None:
    """Folders and files, whatever the umask: keys and events stand in them."""
    stream = Stream(scenario)
    scenario.rule(sequence("ab", "a", "followed_by b"))
    stream.send(("k", "a", 0), ("k", "x", 9))
    scenario.run()
    checkpoint = scenario.folder / "checkpoint"
    modes = {path: path.stat().st_mode & 0o077 for path in (checkpoint, *checkpoint.rglob("*"))}
    assert len(modes) > 10
    assert {path.name: mode for path, mode in modes.items() if mode} == {}


def test_the_first_batch_runs_again_from_where_it_began(scenario: Scenario) -> None:
    """Where a new job would start by now does not matter: the offset log has it."""
    stream = Stream(scenario)
    scenario.rule(sequence("ab", "a", "followed_by b"))
    stream.send(*[("k", name, 2 * n) for n, name in enumerate("abxabx")])

    def read_from(offset: int) -> int:
        """How many records the first batch of a run has."""
        before = len(scenario.reports)
        # What was written before is another job's: this one has no commit markers yet.
        outputs = {"transactional_id_prefix": f"{stream.topic}.from-{offset}"}
        source = {"starting_offsets": {stream.topic: {0: offset}}}
        scenario.run(outputs=outputs, source=source)
        return scenario.reports[before].total(Count.RECORDS)

    assert read_from(2) == 4
    # As after a crash in that batch.
    for log in ("offsets", "commits"):
        for file in (scenario.folder / "checkpoint" / log).iterdir():
            number = file.name.removeprefix(".").partition(".")[0]
            if number.isdigit() and (log, number) != ("offsets", "0"):
                file.unlink()
    assert read_from(5) == 4
