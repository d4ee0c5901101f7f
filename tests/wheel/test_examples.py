"""Python examples and commands without Kafka run where the wheel is installed and nothing else is.

What they show is tested beside the pages, in ``tests/docs``; here they find all that they need.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.wheel.installed import ROOT, Environment
from tests.wheel.pages import DOCS, README, blocks

pytestmark = pytest.mark.wheel

#: Pages with Python examples, and the files that they name.
PAGES: dict[Path, dict[str, Path | None]] = {
    README: {"examples/rules/brute-force.yaml": ROOT / "examples/rules/brute-force.yaml"},
    DOCS / "python.md": {},
    DOCS / "test-kit.md": {"rules/brute-force.yaml": None},
    DOCS / "match-recognize.md": {"brute-force.sql": None},
}


def test_no_page_is_left_out() -> None:
    """Each page with Python examples is here; the tutorial's script is run beside its job."""
    pages = {README, *DOCS.glob("**/*.md")} - {DOCS / "tutorial.md"}
    assert {page for page in pages if blocks(page, "python")} == set(PAGES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_examples(page: Path, environment: Environment) -> None:
    """All examples of a page run in one session, and a user's packages are the user's."""
    for name, file in PAGES[page].items():
        target = environment.folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if file is None:
            (rule,) = [
                text
                for text in blocks(page, target.suffix.removeprefix("."))
                if text.startswith(("-- id: brute-force", "id: brute-force"))
            ]
            target.write_text(rule, "utf-8")
        else:
            shutil.copyfile(file, target)
    own = "import schemas, service\nassert service.OWNER == schemas.OWNER == 'a user'\n"
    (environment.folder / "session.py").write_text(own + "\n".join(blocks(page, "python")), "utf-8")
    ran = environment.run(environment.python, "session.py")
    assert ran.returncode == 0, ran.stderr


@pytest.fixture
def rule(environment: Environment) -> str:
    """The file of the README's rule."""
    (environment.folder / "rules").mkdir()
    (environment.folder / "rules" / "brute-force.yaml").write_text(
        blocks(README, "yaml")[0], "utf-8"
    )
    return "rules/brute-force.yaml"


@pytest.mark.parametrize(
    "words",
    [["explain", "--format", "mermaid"], ["explain", "--format", "plan"]],
    ids=" ".join,
)
def test_forms_without_an_extra(words: list[str], environment: Environment, rule: str) -> None:
    """A rule is drawn, and its plan shown, where no extra is installed."""
    ran = environment.run(environment.command, *words, rule)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout


def test_rules_from_a_table_need_an_extra(environment: Environment) -> None:
    """The error names the setting, the package, and the command that installs it."""
    table = "source: sql\n  sql: {url: 'postgresql://localhost/rules', table: rules}"
    config = blocks(README, "yaml")[1].replace("folder: rules", table)
    (environment.folder / "config.yaml").write_text(config, "utf-8")
    ran = environment.run(environment.command, "check", "--config", "config.yaml")
    assert ran.returncode != 0
    assert ran.stderr == (
        "error: rules.sql: the package sqlalchemy is not installed; install it with the extra"
        " `sql`: pip install 'spark-cep[sql]'\n"
    )


def test_a_drawing_needs_an_extra(environment: Environment, rule: str) -> None:
    """The same for the package that writes DOT."""
    ran = environment.run(environment.command, "explain", "--format", "dot", rule)
    assert ran.returncode != 0
    assert ran.stderr == (
        "error: explain --format dot: the package graphviz is not installed; install it with the"
        " extra `dot`: pip install 'spark-cep[dot]'\n"
    )
