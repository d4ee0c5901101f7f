"""Rule files of somebody who means harm: refused with rule, step and place, in bounded time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spark_cep.documents.reading import MOST_CHARACTERS
from spark_cep.errors import RuleSetError
from spark_cep.pattern.document import expression_texts
from spark_cep.pattern.document import loading as document
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pattern.expressions import Expression, parse
from spark_cep.rules.sources.folder import read_rules
from tests.pattern.expressions.test_security import HOSTILE

PLACES = {
    "where": "  - {{step: a, where: {text}}}\n",
    "until": "  - {{step: a, where: x = 1, times: 2+, until: {text}}}\n",
}
TOP = {"measures": "emit: {{measures: {{m: {text}}}}}\n", "key": "key: [{text}]\n"}
ATTACK = "reflect('java.lang.System', 'exit', 1)"


def _quoted(text: str) -> str:
    """The text as one YAML scalar on one line."""
    escapes = {"\\": "\\\\", '"': '\\"'}
    inner = "".join(
        escapes.get(c) or (c if c.isprintable() and c.isascii() else f"\\U{ord(c):08x}")
        for c in text
    )
    return f'"{inner}"'


def _rule(step: str, top: str = "key: k\n") -> str:
    return f"id: evil\n{top}pattern:\n{step}"


@pytest.mark.parametrize("text", [text for text in HOSTILE if len(text) < MOST_CHARACTERS])
def test_a_hostile_condition_is_refused_with_its_place(text: str) -> None:
    """The message names file, line, rule and step."""
    file = _rule(PLACES["where"].format(text=_quoted(text)))
    with pytest.raises(RuleSetError) as caught:
        load_rules(file, "evil.yaml")
    for problem in caught.value.problems:
        assert (problem.rule, problem.step) == ("evil", "a")
        assert problem.span is not None
        assert problem.span.line == 4
        assert problem.render().startswith("evil.yaml:4:")


@pytest.mark.parametrize("place", [*PLACES, *TOP])
def test_every_expression_of_a_rule_is_held_to_the_list(place: str) -> None:
    """Conditions, `until`, measures and keys."""
    if place in PLACES:
        file = _rule(PLACES[place].format(text=_quoted(ATTACK)))
    else:
        top = TOP[place].format(text=_quoted(ATTACK))
        key = "" if place == "key" else "key: k\n"
        file = _rule("  - {step: a, where: x = 1}\n", key + top)
    with pytest.raises(RuleSetError) as caught:
        load_rules(file, "evil.yaml")
    assert {problem.rule for problem in caught.value.problems} == {"evil"}
    assert all(problem.span for problem in caught.value.problems)


@pytest.mark.parametrize(
    "value",
    [
        "!!python/object/apply:os.system ['touch owned']",
        "!!python/object/new:subprocess.Popen [['touch', 'owned']]",
        "!!python/name:os.system",
        "!!python/module:os",
        "!!python/tuple [1, 2]",
        "!!binary aGFsbG8=",
        "!!set {a, b}",
        "!!omap [a: 1]",
        "!include /etc/passwd",
        "!ENV ${PATH}",
        "!<tag:example.com,2000:x> a",
    ],
)
@pytest.mark.parametrize("place", ["id", "pattern", "description"])
def test_tags_make_nothing(
    value: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No tag is followed; the message shows its line."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RuleSetError) as caught:
        load_rules(f"{place}: {value}\n", "evil.yaml")
    assert "is not allowed" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_merged_mappings_are_counted() -> None:
    """Merges that double at each level are refused like any other bomb."""
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{n}: &a{n} {{p: *a{n - 1}, q: *a{n - 1}}}" for n in range(1, 40)]
    with pytest.raises(RuleSetError, match="more than 50,000 nodes"):
        load_rules("\n".join(lines), "evil.yaml")


def test_an_expression_is_read_once_however_often_an_alias_repeats_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of 200 steps with one condition, right or wrong."""
    read: list[str] = []

    def counted(text: str, **options: Any) -> Expression:
        read.append(text)
        return parse(text, **options)

    monkeypatch.setattr(expression_texts, "parse", counted)
    for condition in ("x > 1", "x > AND rand() = 1"):
        steps = [f"{{step: s{n}, after: next, where: *a}}" for n in range(1, 200)]
        first = f"{{step: s0, where: &a '{condition}'}}"
        rule = f"id: r\nkey: k\nwithin: 1 h\npattern: [{', '.join([first, *steps])}]\n"
        read.clear()
        _, problems = document.examine_rules(rule, "evil.yaml")
        assert read == ["k", condition]
        assert len(problems) in (0, 200)


def test_quoted_values_are_shortened_in_messages() -> None:
    """A message holds no more of a text than one can read, wherever it comes from."""
    long = "x" * 200_000
    for text in (
        f"id: r\n? {long}\n: 1\npattern: [{{step: a}}]",
        f"id: {long}\npattern: [{{step: a}}]",
        f"id: r\npattern: [{{step: {long}}}]",
        f"id: r\npattern: [{{step: a, after: {long}}}]",
        f"id: r\npattern: [{{step: a, times: {long}}}]",
        f"id: r\nafter_match: {{skip_to_last: {long}}}\npattern: [{{step: a}}]",
        f"id: r\npattern: [{{step: a, where: {long}.b = 1}}]",
    ):
        with pytest.raises(RuleSetError) as caught:
            load_rules(text, "evil.yaml")
        assert len(str(caught.value)) < 5_000


def test_many_names_are_not_all_listed() -> None:
    """Where a step is meant that there is not."""
    steps = ", ".join(f"{{step: s{n}, after: next}}" for n in range(3_000))
    rule = f"id: r\nkey: k\npattern: [{{step: a, where: LAST(zebra.x) = 1}}, {steps}]\n"
    with pytest.raises(RuleSetError) as caught:
        load_rules(rule, "evil.yaml")
    assert "s10, " in str(caught.value) + ", "
    assert "more" in str(caught.value)
    assert len(str(caught.value)) < 3_000


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    """Nothing of the file behind it is in the message; links within the folder, as Kubernetes
    makes them, are followed."""
    secret = tmp_path / "secret"
    secret.write_text("hunter2: [", "utf-8")
    folder = tmp_path / "rules"
    data = folder / "..2026_01_01"
    data.mkdir(parents=True)
    (data / "good.yaml").write_text(
        "id: good\nkey: k\npattern:\n  - {step: a, where: x = 1}\n", "utf-8"
    )
    (folder / "..data").symlink_to("..2026_01_01")
    (folder / "good.yaml").symlink_to("..data/good.yaml")
    assert [rule.id for rule in read_rules(folder).rules] == ["good"]
    for target in (secret, Path("../secret")):
        link = folder / "evil.yaml"
        link.symlink_to(target)
        with pytest.raises(RuleSetError, match="leads out of the folder") as caught:
            read_rules(folder)
        assert "evil.yaml" in str(caught.value)
        assert "hunter2" not in str(caught.value)
        link.unlink()


def test_a_folder_that_is_a_link_itself_is_followed(tmp_path: Path) -> None:
    """What the settings name is the operator's word."""
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "good.yaml").write_text(
        "id: good\nkey: k\npattern:\n  - {step: a, where: x = 1}\n", "utf-8"
    )
    (tmp_path / "rules").symlink_to("real")
    assert [rule.id for rule in read_rules(tmp_path / "rules").rules] == ["good"]
