"""A run's result as tables for ``docs/performance.md``."""

from __future__ import annotations

from tests.endurance.run import HELD, Result, Waited


def markdown(result: Result) -> str:
    """The tables."""
    options, verdict = result.options, result.verdict
    lines = [
        _told(result),
        "",
        "| output | expected | written | lost | twice | wrong | unexpected |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for kind in sorted({*verdict.expected, *verdict.written}):
        counts = (
            verdict.expected, verdict.written, verdict.lost, verdict.twice, verdict.wrong,
            verdict.unexpected,
        )  # fmt: skip
        lines.append(f"| {kind} | " + " | ".join(f"{count[kind]:,}" for count in counts) + " |")
    lines += [
        "",
        "| time, s | changes | p50 | p99 | largest | aim |",
        "| --- | ---: | ---: | ---: | ---: | --- |",
        _row("from publishing to the first committed batch with it", result.to_commit, "2.5, 5"),
        _row("from publishing to `/rules`", result.to_rules, ""),
        _row("from the commit until `/rules` and the status topic tell", result.agreed, "p99 2"),
        "",
        f"| after {options.settle:g} minutes | unit | changed | fresh job | times |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {name} | {HELD[name]} | {result.changed[name]:.4g} | {result.fresh[name]:.4g}"
        f" | {times:.2f} |"
        for name, times in result.times.items()
    ]
    lines += ["", *(f"**Failed**: {each}" for each in result.failures or ())]
    return "\n".join(lines).rstrip() + "\n"


def _told(result: Result) -> str:
    options = result.options
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(result.changes.items()))
    return (
        f"{result.changes.total():,} changes in {options.minutes:g} minutes ({kinds}),"
        f" {result.rule_sets:,} rule sets, {result.records:,} events at {options.rate:,} a second,"
        f" of which rules read {options.share:.1%}; the feed was at most"
        f" {result.feed_late_by:.2f} s behind. Compared in {result.compared_in:.0f} s."
    )


def _row(name: str, waited: Waited, aim: str) -> str:
    shown = " | ".join(f"{waited.at(share):.2f}" for share in (0.5, 0.99, 1.0))
    return f"| {name} | {len(waited.values):,} | {shown} | {aim} |"
