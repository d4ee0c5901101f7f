"""Reports of Spark about a checkpoint, and what the service makes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_cep.errors import StateError
from spark_cep.pipeline.driver.checkpoint.files import held
from spark_cep.pipeline.driver.checkpoint.state_faults import state_fault

PLACE = "/data/checkpoint"

REPORTS = {
    "java.io.IOException: No space left on device\n\tat java.base/java.io": "make room",
    "FileNotFoundException: /data/checkpoint/.7.tmp (Permission denied)": "correct its permissions",
    "[STREAMING_CHECKPOINT_MISSING_METADATA_FILE] Checkpoint location file:/x is": "restore",
    "[STREAMING_UNFINISHED_REPARTITION_DETECTED] The latest batch 4 is": "spark-cep rescale",
    "[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state.": "restore",
    "Incomplete log file in the offset commit log": "restore",
    "[STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE] Provided value schema": "another version",
}


@pytest.mark.parametrize("report", REPORTS)
def test_what_to_do(report: str) -> None:
    """Each says what to do, and what Spark said."""
    error = state_fault(f"An error occurred.\n{report}\n\tat org.apache", PLACE)
    assert isinstance(error, StateError)
    assert REPORTS[report] in str(error)
    assert report.partition("\n")[0] in str(error)


def test_the_file_and_the_cause() -> None:
    """The file below the checkpoint that the report names, rather than the folder alone; and the
    last cause."""
    report = (
        "[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state.\n"
        "\tat org.apache.spark.Something(Other.scala:1)\n"
        "Caused by: java.lang.RuntimeException: first\n"
        "Caused by: ChecksumException: file:/data/checkpoint/state/0/1/3.changelog at 512\n"
    )
    text = str(state_fault(report, f"file:{PLACE}"))
    assert "(file:/data/checkpoint/state/0/1/3.changelog)" in text
    assert "first" not in text
    assert text.endswith("3.changelog at 512")


@pytest.mark.parametrize(
    "report", ["TimeoutException: the brokers do not answer", "ValueError: a wrong schema"]
)
def test_what_is_something_else(report: str) -> None:
    """Errors of brokers, rules and workers are none of the checkpoint's."""
    assert state_fault(report, PLACE) is None


def test_a_checkpoint_is_held_by_one(tmp_path: Path) -> None:
    """Until it is let go; the folder stays empty, as Spark wants a new one to be."""
    folder = tmp_path / "check point"
    with held(str(folder)):
        with pytest.raises(StateError, match="in use by another process"), held(folder.as_uri()):
            pass
        assert not list(folder.iterdir())
    with (
        held(str(folder), alone=False),
        held(str(folder), alone=False),
        pytest.raises(StateError, match="in use by another process"),
        held(str(folder)),
    ):
        pass
    with held(str(folder)):
        pass


def test_a_checkpoint_that_cannot_be_opened(tmp_path: Path) -> None:
    """A file stands where the folder should be."""
    (tmp_path / "file").touch()
    with (
        pytest.raises(StateError, match=r"cannot be opened: .*rights"),
        held(str(tmp_path / "file" / "checkpoint")),
    ):
        pass


def test_storage_that_nobody_can_hold() -> None:
    """Other than a local disk."""
    with held("s3a://bucket/checkpoint"), held("s3a://bucket/checkpoint"):
        pass
