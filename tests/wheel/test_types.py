"""A user's file outside the repository is checked against the types that the wheel brings."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.wheel.installed import Environment

pytestmark = pytest.mark.wheel

_FILE = """
from spark_cep import Pattern, to_yaml
from spark_cep.testkit import RuleTest

rule = Pattern.begin("a").where("x > 1").next("b").within("1 minute").rule("r", key="k")
reveal_type(to_yaml(rule))
kit = RuleTest(rule, allowed_disorder="1 second")
kit.send(k="a", x=2)
kit.advance("1 minute")
reveal_type(kit)
reveal_type(kit.matches[0])
reveal_type(kit.matches[0].measures)
Pattern.begin(1)
kit.mathces
"""


def test_types_are_found(environment: Environment) -> None:
    """What is right has its type, and what is wrong is told, by ``mypy --strict``."""
    (environment.folder / "users.py").write_text(_FILE, "utf-8")
    words = ["--strict", "--no-error-summary", "--python-executable", str(environment.python)]
    found = subprocess.run(
        [sys.executable, "-m", "mypy", *words, "users.py"],
        cwd=environment.folder, env=environment.variables(), capture_output=True, text=True,
        check=False, timeout=300,
    )  # fmt: skip
    assert found.stdout.splitlines() == [
        'users.py:6: note: Revealed type is "str"',
        'users.py:10: note: Revealed type is "spark_cep.testkit.rule_test.RuleTest"',
        'users.py:11: note: Revealed type is "spark_cep.testkit.results.FoundMatch"',
        'users.py:12: note: Revealed type is "typing.Mapping[str, Any]"',
        (
            'users.py:13: error: Argument 1 to "begin" of "Pattern" has incompatible type "int";'
            ' expected "str"  [arg-type]'
        ),
        (
            'users.py:14: error: "RuleTest" has no attribute "mathces"; maybe "matches"?'
            "  [attr-defined]"
        ),
    ], found.stdout + found.stderr
