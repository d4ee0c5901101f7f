"""A page of ``spark-cep watch`` over a job that is made up: ``python -m tests.watch.served_page``
prints its address."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from spark_cep.compiler.rule_set import compile_rule
from spark_cep.errors import KafkaUnavailableError
from spark_cep.model import Coordinates
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pipeline.state.stored_group import HeldPartial, StoredRule
from spark_cep.play.beginning import beginning
from spark_cep.play.running import drawing_of
from spark_cep.watch.figures import Figures
from spark_cep.watch.job_watch import JobPages, JobWatch, OpenState
from spark_cep.watch.page.server import serve
from spark_cep.watch.readers import Readers
from spark_cep.watch.recent_lines import ShownLine
from spark_cep.watch.tokens import DrawnRule, Numbering

STEPS, _ = beginning()
(LOADED,) = load_rules(STEPS.text, STEPS.file)
RULE = LOADED.rule


def _row(rule: str, open_: int) -> dict[str, Any]:
    return {"id": rule, "version": 1, "state": "active", "partial_matches": open_, "reason": None}


class MadeUpChanges:
    """Changes of the rules, of which each makes two open partial matches take an event."""

    def __init__(self, watch: JobWatch) -> None:
        self._watch = watch
        self._numbering = Numbering()
        self._taken = 1
        self._hold()

    def pause(self, rule: str) -> str:
        """Pause a rule, but for one."""
        if rule == "quiet":
            raise KafkaUnavailableError("servers: 127.0.0.1:1/bootstrap: Connect failed")
        return self._changed(rule, "paused")

    def resume(self, rule: str) -> str:
        """Resume a rule."""
        return self._changed(rule, "active")

    def add(self, text: str, ids: frozenset[str]) -> str:
        """Add a rule that can be read, and that there is not yet."""
        (loaded,) = load_rules(text, "the rule")
        assert loaded.rule.id not in ids
        pages = self._watch.pages
        self._watch.pages = replace(pages, rules=[*pages.rules, _row(loaded.rule.id, 0)])
        return f"rule {loaded.rule.id} is written"

    def _changed(self, rule: str, state: str) -> str:
        pages = self._watch.pages
        rules = [{**row, "state": state} if row["id"] == rule else row for row in pages.rules]
        self._watch.pages = replace(pages, rules=rules)
        self._watch.results.add([ShownLine("match", f"match {self._taken} of {rule}")])
        self._taken += 1
        self._hold()
        return f"{state} it is"

    def _hold(self) -> None:
        stored = StoredRule(RULE.id, RULE.version, "f", 0)
        partials = [
            (key, HeldPartial(stored, 0, 60_000, events, [self._taken]))
            for partition, key in enumerate(("ann", "bob"))
            for events in [
                [(0, Coordinates("t", partition, offset)) for offset in range(self._taken)]
            ]
        ]
        drawn = DrawnRule(
            RULE.id, RULE.version, drawing_of(RULE), compile_rule(RULE).steps, LOADED.text
        )
        known = {(RULE.id, RULE.version): drawn}
        tokens = self._numbering.tokens(partials, known)
        self._watch.open = OpenState(self._taken, tokens, known)


def main() -> None:
    """Serve the page until the process ends."""
    watch = JobWatch()
    rejected = {"id": "wrong", "state": "rejected", "source": "wrong.yaml", "reason": "a reason"}
    rules = [_row("quiet", 0), _row(RULE.id, 2), rejected]
    for second in range(120):
        figures = Figures(records=100 * second + 40 * (second % 7), lag=second % 5, late=2)
        figures.watermark = 1_800_000_000.0 + second
        watch.took_pages(second, JobPages("ready", rules, figures))
    watch.records.add(
        ShownLine("record", f"logins  ann  user=ann n={number}") for number in range(300)
    )
    readers = Readers({})
    readers.notes["checkpoint"] = "no file"
    serve(
        "127.0.0.1", 0, watch, readers, MadeUpChanges(watch), show=False,
        ready=lambda address: print(address, flush=True),
    )  # fmt: skip


if __name__ == "__main__":
    main()
