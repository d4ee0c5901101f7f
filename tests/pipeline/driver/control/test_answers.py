"""Answers of Kafka, between the source and the driver."""

from __future__ import annotations

from pathlib import Path

from spark_cep.pipeline.driver.control.answers import KafkaAnswer, last_answer, tell_answer


def test_the_last_answer_is_known(tmp_path: Path) -> None:
    """None before there was one."""
    file = tmp_path / "answers.json"
    assert last_answer(file) is None
    for answer in (KafkaAnswer(17, waits=True), KafkaAnswer(18, waits=False)):
        tell_answer(file, answer)
        assert last_answer(file) == answer


def test_a_folder_that_is_gone_is_not_made_again(tmp_path: Path) -> None:
    """The run has ended, and its source is still asked."""
    tell_answer(tmp_path / "gone" / "answers.json", KafkaAnswer(17, waits=True))
    assert list(tmp_path.iterdir()) == []
