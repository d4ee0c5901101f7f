"""A soak's result as text and as a picture."""

from __future__ import annotations

from pathlib import Path

from bench.soak.run import Result
from supply_chain.errors import DependencyError

_PANELS = (
    ("memory, MiB", ("jvm_memory_mib", "jvm_old_generation_mib", "workers_memory_mib",
                     "driver_memory_mib")),
    ("open files", ("jvm_open_files", "workers_open_files", "driver_open_files")),
    ("state rows, partial matches", ("state_rows", "partial_matches")),
    ("files", ("checkpoint_files", "scratch_files")),
    ("batch, s", ("batch_seconds",)),
    ("lag, records", ("lag_records",)),
)  # fmt: skip
_KINDS = ("match", "timeout", "late", "dead_letter")


def markdown(result: Result) -> str:
    """Tables for ``docs/soak.md``."""
    options = result.options
    flat = {True: "flat", False: "**not flat**", None: "too short to say"}
    verdict = result.verdict
    told = (
        f"{options.minutes:g} minutes, {result.records:,} records at {options.rate:,} a second,"
        f" {result.rules} rules, {result.kills} SIGKILL and {result.stops} SIGTERM"
        f" (exit codes {', '.join(map(str, result.exit_codes))})."
    )
    lines = [
        told,
        "",
        "| output | expected | written | lost | twice | wrong | unexpected |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for kind in _KINDS:
        counts = (
            verdict.expected, verdict.written, verdict.lost, verdict.twice, verdict.wrong,
            verdict.unexpected,
        )  # fmt: skip
        lines.append(f"| {kind} | " + " | ".join(f"{count[kind]:,}" for count in counts) + " |")
    lines += [
        "",
        f"From {result.flat_from / 60:.1f} minutes on:",
        "",
        "| figure | unit | median | slope an hour | 95 % interval | verdict |",
        "| --- | --- | ---: | ---: | ---: | --- |",
    ]
    lines += [
        f"| {one.name} | {one.unit} | {one.median:.4g} | {one.slope:+.3g}"
        f" | {one.low:+.3g} to {one.high:+.3g} | {flat[one.flat]} |"
        for one in result.trends
    ]
    return "\n".join(lines) + "\n"


def plot(result: Result, file: Path) -> None:
    """Draw the samples into ``file`` (SVG). DependencyError without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise DependencyError("the plot needs matplotlib: pip install -e .[dev]") from error
    figure = Figure(figsize=(9, 1.9 * len(_PANELS)), layout="constrained")
    for axes, (title, names) in zip(
        figure.subplots(len(_PANELS), 1, sharex=True), _PANELS, strict=True
    ):
        for name in names:
            points = [(one["seconds"] / 60, one[name]) for one in result.samples if name in one]
            if points:
                axes.plot(*zip(*points, strict=True), linewidth=0.9, label=name)
        for seconds, what in result.events:
            if what != "ready":
                axes.axvline(seconds / 60, color="0.8", linewidth=0.8, zorder=0)
        axes.axvspan(result.flat_from / 60, axes.get_xlim()[1], color="0.95", zorder=-1)
        axes.set_ylim(bottom=0)
        axes.set_title(title, fontsize=9, loc="left")
        axes.legend(fontsize=7, loc="upper left", ncols=4)
    axes.set_xlabel("minutes; lines: kills and stops; grey: where figures must be flat")
    figure.savefig(file, metadata={"Date": None})
