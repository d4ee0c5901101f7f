"""What keeps a rule from being added, before anything is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_cep.config import Settings
from spark_cep.errors import ConfigurationError, RuleSetError
from spark_cep.watch.rule_changes import RuleChanges, _written

RULE = "id: r\nversion: 1\npattern:\n  - step: a\n    where: kind = 'a'\n"


@pytest.fixture
def changes(tmp_path: Path) -> RuleChanges:
    """Of a job whose rules are in a folder."""
    return RuleChanges(
        Settings.model_validate(
            {
                "kafka": {"bootstrap_servers": "nowhere:1"},
                "inputs": {"t": {"topics": ["t"], "event_time": "ts"}},
                "outputs": {"topics": {"matches": "m", "timeouts": "o"}},
                "state": {"checkpoint": str(tmp_path / "checkpoint")},
                "rules": {"folder": str(tmp_path)},
            }
        )
    )


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (RULE.replace("kind =", "kind"), RuleSetError, "kind 'a'"),
        (f"{RULE}---\n{RULE.replace('id: r', 'id: s')}", ConfigurationError, "there are 2"),
        (RULE, ConfigurationError, "the job has a rule r already: give this one another id"),
    ],
)
def test_what_is_refused(
    changes: RuleChanges, tmp_path: Path, text: str, error: type[Exception], message: str
) -> None:
    """A mistake, more than one rule, an id that the job has; nothing is written."""
    with pytest.raises(error, match=message):
        changes.add(text, {"r"})
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_not_replaced(tmp_path: Path) -> None:
    """A rule is written as it was given, once."""
    assert _written(tmp_path, "r", RULE).read_text() == RULE
    with pytest.raises(ConfigurationError, match=r"r\.yaml: there is such a file already"):
        _written(tmp_path, "r", "other")
    assert (tmp_path / "r.yaml").read_text() == RULE
