"""How far the job is, read from its ``/metrics`` and ``/rules`` as a monitoring system would."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from http.client import HTTPException

from prometheus_client.parser import text_string_to_metric_families

from examples.demo.expected import RULES
from spark_cep.observability import metric_names as names

_SECONDS = 2.0


@dataclass(frozen=True)
class Progress:
    """One reading. ``watermark`` is in milliseconds, None before there is one."""

    read: Counter[str] = field(default_factory=Counter)
    tombstones: Counter[str] = field(default_factory=Counter)
    late: Counter[str] = field(default_factory=Counter)
    batches: int = 0
    restarts: int = 0
    watermark: int | None = None
    #: Events that were read and wait for the watermark.
    waiting: int = 0
    #: By id of each rule that is active, the first batch under it.
    rules: Mapping[str, int] = field(default_factory=dict)
    #: Ids of rules that are not the demo's, or are paused.
    changed: frozenset[str] = frozenset()


class JobPages:
    """The pages that the job serves on its metrics port."""

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}"

    def ready(self) -> bool:
        """Whether the query runs."""
        return self._page("/readyz") is not None

    def progress(self) -> Progress | None:
        """The newest reading; None while the job does not answer."""
        text, rules = self._page("/metrics"), self._page("/rules")
        if text is None or rules is None:
            return None
        rows = json.loads(rules)["rules"]
        active = {each["id"]: each["since_batch"] for each in rows if each["state"] == "active"}
        changed = frozenset(
            str(each["id"]) for each in rows if each["id"] not in RULES or each["state"] == "paused"
        )
        return replace(read_progress(text), rules=active, changed=changed)

    def _page(self, path: str) -> str | None:
        try:
            with urllib.request.urlopen(self.address + path, timeout=_SECONDS) as answer:  # noqa: S310  our own job
                return str(answer.read().decode())
        except (urllib.error.URLError, HTTPException, OSError):
            return None


def read_progress(text: str) -> Progress:
    """What the demo shows of a page in Prometheus' format."""
    by_name: dict[str, list[tuple[Mapping[str, str], float]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            by_name.setdefault(sample.name, []).append((sample.labels, sample.value))

    def by_topic(metric: str) -> Counter[str]:
        return Counter({s["topic"]: int(value) for s, value in by_name.get(metric, ())})

    def total(metric: str) -> int:
        return int(sum(value for _, value in by_name.get(metric, ())))

    watermark = [value for _, value in by_name.get(names.WATERMARK.name, ())]
    return Progress(
        read=by_topic(names.RECORDS_CONSUMED.name),
        tombstones=by_topic(names.TOMBSTONES.name),
        late=by_topic(names.LATE_EVENTS.name),
        batches=total(names.BATCHES.name),
        restarts=total(names.QUERY_RESTARTS.name),
        waiting=total(names.EVENTS_WAITING.name),
        watermark=round(watermark[0] * 1000) if watermark and watermark[0] else None,
    )
