"""What ``spark-cep doctor`` tells where nothing answers: all of it, not the first thing alone."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from spark_cep.config import Settings
from spark_cep.errors import KafkaUnavailableError, RuleSetError, StartError, StateError
from spark_cep.pipeline.driver.commands.doctor import examine


def settings(folder: Path, checkpoint: Path) -> Settings:
    """With a broker at a port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return Settings.model_validate(
        {
            "kafka": {"bootstrap_servers": f"127.0.0.1:{port}"},
            "inputs": {"i": {"topics": ["t"]}},
            "registry": {"url": "http://127.0.0.1:1"},
            "state": {"checkpoint": str(checkpoint)},
            "rules": {"folder": str(folder)},
        }
    )


def test_everything_that_is_wrong_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each with its error; what needs Kafka is not tried."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    (tmp_path / "r.yaml").write_text("id: r\n", "utf-8")
    (tmp_path / "file").touch()
    found = {
        each.what: each.error
        for each in examine(settings(tmp_path, tmp_path / "file" / "checkpoint"), 0.2)
    }
    kinds = {what.split()[0]: type(error) for what, error in found.items() if error is not None}
    assert kinds == {
        "Java": StartError,
        "rules": RuleSetError,
        "Kafka": KafkaUnavailableError,
        "checkpoint": StateError,
    }
    assert list(found)[-1] == "pages"


def test_what_a_checkpoint_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is made: a new one has no folder afterwards."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    place = tmp_path / "new" / "checkpoint"
    found = {each.what: each.found for each in examine(settings(tmp_path, place), 0.2)}
    assert found[f"checkpoint {place}"] == "new: a start begins a checkpoint"
    assert not place.parent.exists()
    (place / "commits").mkdir(parents=True)
    for batch in (9, 10):
        (place / "commits" / str(batch)).touch()
    found = {each.what: each.found for each in examine(settings(tmp_path, place), 0.2)}
    assert found[f"checkpoint {place}"] == "as of batch 10"
