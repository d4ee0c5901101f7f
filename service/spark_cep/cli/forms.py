"""The forms in which ``spark-cep explain`` shows a rule; apart, since all else it needs is slow to
import."""

from __future__ import annotations

from enum import Enum


class RuleForm(Enum):
    """The forms in which a rule is shown."""

    TEXT = "text"
    DOT = "dot"
    MERMAID = "mermaid"
    PLAN = "plan"
