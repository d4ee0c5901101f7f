"""What a misspelt name was meant to be."""

from __future__ import annotations

from spark_cep.documents.nearest import instead, listed, nearest


def test_the_nearest_name_is_found_whatever_its_case() -> None:
    """And nothing when no name is near."""
    assert nearest("wehre", ["where", "when"]) == "where"
    assert nearest("eventtype", ["eventTime", "eventType"]) == "eventType"
    assert nearest("zzz", ["where", "when"]) is None
    assert nearest("wehre", []) is None


def test_similarity_is_a_limit() -> None:
    """A stricter one finds less."""
    assert nearest("fial", ["fail"], 0.75) == "fail"
    assert nearest("file", ["fail"], 0.8) is None


def test_help_names_all_there_are() -> None:
    """The nearest first, if there is one."""
    assert instead("wehre", ["where", "when"], "keys") == (
        "did you mean `where`? keys here: where, when"
    )
    assert instead("zzz", ["where"], "keys") == "keys here: where"
    assert instead("zzz", [], "keys") == "keys here: none"


def test_of_many_names_those_are_shown_that_begin_like_the_one_that_was_written() -> None:
    """They are looked at first, too."""
    topics = [f"other-{n:04}" for n in range(2000)] + ["payments.events"]
    assert nearest("payments.event", topics) == "payments.events"
    assert listed(topics, like="payments.missing").startswith("payments.events, other-0000, ")
    assert listed(topics, like="payments.missing").endswith(" and 1,951 more")
    assert listed(["b", "a"], like="a") == "b, a"
