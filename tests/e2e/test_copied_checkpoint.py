"""A checkpoint that was copied badly: its files are whole, and of several batches, partitions or
copies. What would be a wrong result in silence is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from spark_cep.cli.exit_codes import exit_code
from spark_cep.errors import StateError
from tests.e2e.halfway import Copy, Halfway
from tests.e2e.outputs import Outputs
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, sequence

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

RESTORE = "restore the checkpoint from a copy, or start from a new checkpoint"


def replace(file: Path, by: Path) -> None:
    """Put a file, with its checksum, in the place of another."""
    shutil.copyfile(by, file)
    shutil.copyfile(by.with_name(f".{by.name}.crc"), file.with_name(f".{file.name}.crc"))


#: Below ``state/0``: which file is replaced, by which, and what is said.
REPLACED = {
    "newest changes by older ones": ("0/3.changelog", "0/2.changelog", "not written by the batch"),
    "by another partition's": ("0/3.changelog", "1/3.changelog", "not written by the batch"),
    "a whole partition by another": ("0", "1", "has nothing of key group"),
}


@pytest.mark.parametrize("fault", REPLACED)
def test_a_file_of_the_state_replaced(halfway: Halfway, tmp_path: Path, fault: str) -> None:
    """By that of an older batch or of another partition."""
    name, by, message = REPLACED[fault]

    def damage(copy: Copy) -> None:
        state = copy.checkpoint / "state" / "0"
        if (state / name).is_dir():
            shutil.rmtree(state / name)
            shutil.copytree(state / by, state / name)
        else:
            replace(state / name, state / by)

    refused(halfway.copy(tmp_path, damage), message)


def refused(copy: Copy, message: str) -> None:
    """The job ends with the exit code for state, and says what to do."""
    with pytest.raises(StateError, match=message) as caught:
        copy.finish()
    assert RESTORE in str(caught.value)
    assert exit_code(caught.value) == 7


def test_offsets_of_another_copy(scenario: Scenario) -> None:
    """Newest offsets and commit were lost, the batch was planned again with other records on a
    copy, and its output holds that number already."""
    scenario.rule(sequence("ab", "a", "followed_by b"))
    stream = Stream(scenario)
    checkpoint, copy = (scenario.folder / name for name in ("checkpoint", "copy"))
    stream.send(("k", "a", 0), ("k", "b", 1), ("k", "x", 9))
    scenario.run()
    shutil.copytree(checkpoint, copy)
    stream.send(("k", "a", 10), ("k", "b", 11), ("k", "x", 19))
    written = scenario.run().match_ids()
    shutil.rmtree(checkpoint)
    shutil.copytree(copy, checkpoint)
    stream.send(("k", "a", 20), ("k", "b", 21), ("k", "x", 29))
    elsewhere = {kind: scenario.topic(f"other-{kind}") for kind in ("matches", "timeouts")}
    scenario.run(
        outputs={
            "transactional_id_prefix": scenario.topic("elsewhere"),
            "topics": {**{k: scenario.topic(k) for k in Outputs.KINDS}, **elsewhere},
        }
    )
    with pytest.raises(StateError, match=r"offsets/1 of the checkpoint are of other records"):
        scenario.run()
    assert scenario.outputs().match_ids() == written


def test_a_state_of_another_copy(scenario: Scenario) -> None:
    """A batch was planned twice, with other records: offsets of the one, state of the other."""
    scenario.rule(sequence("ab", "a", "followed_by b"))
    stream = Stream(scenario)
    checkpoint, copy = (scenario.folder / name for name in ("checkpoint", "copy"))
    stream.send(("k", "a", 0), ("k", "x", 9))
    # Commit markers would tell them apart first; another prefix has none yet.
    jobs = ({"transactional_id_prefix": scenario.topic(f"job-{n}")} for n in range(3))
    scenario.run(outputs=next(jobs))
    shutil.copytree(checkpoint, copy)
    stream.send(("k", "a", 10), ("k", "x", 19))
    scenario.run(outputs=next(jobs))
    stream.send(("k", "a", 20), ("k", "x", 29))
    scenario.run(state={"checkpoint": str(copy)})
    for log in ("offsets", "commits"):
        replace(checkpoint / log / "1", copy / log / "1")
    with pytest.raises(StateError, match=f"not written by the batch before.*{RESTORE}"):
        scenario.run(outputs=next(jobs))
