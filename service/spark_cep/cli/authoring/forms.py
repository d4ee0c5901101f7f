"""The forms in which ``spark-cep explain`` shows a rule and ``spark-cep check`` its results; apart,
since all else they need is slow to import."""

from __future__ import annotations

from enum import Enum


class RuleForm(Enum):
    """The forms in which a rule is shown."""

    TEXT = "text"
    DOT = "dot"
    MERMAID = "mermaid"
    PLAN = "plan"


class CheckForm(Enum):
    """The forms in which the results of a check are shown."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    GITHUB = "github"
