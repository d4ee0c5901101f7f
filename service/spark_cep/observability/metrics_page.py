"""``docs/metrics.md``, written from the table of metrics:
``python -m spark_cep.observability.metrics_page``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Final

from spark_cep.observability.metric_names import METRICS

_HEAD: Final = """\
# Metrics

<!-- From `observability/metric_names.py`, by `python -m spark_cep.observability.metrics_page`. -->

`/metrics` on `observability.metrics_port` of the driver serves these and the `process_` metrics of
its Python process. It is the one place to scrape: what executors count comes with the batches.

- Counts of a batch are added when its output is committed, once, however often it had to be run and
  however often the query was restarted. Counters live in the process: they begin at 0 with it
  (`rate()` and `increase()` allow for that), and a batch that was committed but not counted when a
  process ended is counted by the next, which repeats it.
- The label `rule` takes at most `observability.max_rule_labels` different values; the rules beyond
  are counted together as `other`.
- In the OpenMetrics format, which Prometheus asks for, `spark_cep_matches_total` and the buckets
  of the two latencies have exemplars: the number of the last `batch` that was counted there, as in
  the log, and its `trace_id` where [traces](tracing.md) are on.
- Values of `reason` are the [reasons of dead letters](output.md#reasons).

| metric | kind | labels | meaning |
| --- | --- | --- | --- |
"""


def render_reference() -> str:
    """The text of ``docs/metrics.md``."""
    parts = [_HEAD]
    for metric in METRICS:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        parts.append(f"| `{metric.name}` | {metric.kind} | {labels} | {metric.help} |\n")
    for metric in METRICS:
        for label, values in metric.labels.items():
            if isinstance(values, Mapping):
                parts.append(
                    f"\n## `{label}` of `{metric.name}`\n\n| value | what it is |\n| --- | --- |\n"
                )
                parts += [f"| `{value}` | {text} |\n" for value, text in values.items()]
    return "".join(parts)


if __name__ == "__main__":
    sys.stdout.write(render_reference())
