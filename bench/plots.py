"""Figures as pictures (SVG)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import history
from supply_chain.errors import DependencyError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Document = Mapping[str, Any]


def draw(documents: Mapping[str, Document], past: Path, folder: Path) -> dict[str, str]:
    """A file in ``folder`` for each benchmark that has a plot, and for the history; their names by
    benchmark. DependencyError without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise DependencyError("plots need matplotlib: pip install -e .[dev]") from error
    folder.mkdir(parents=True, exist_ok=True)
    plots: dict[str, Callable[[Axes], None]] = {}
    for name, how in _PLOTS.items():
        if name in documents:
            # Bound now: the loop goes on.
            plots[name] = lambda axes, how=how, one=documents[name]: how(axes, one)  # type: ignore[misc]
    if past.exists() and (lines := history.read(past)):
        plots["history"] = lambda axes: _history(axes, lines)
    names = {}
    for name, plot in plots.items():
        figure = Figure(figsize=(7, 3.2), layout="constrained")
        plot(figure.subplots())
        names[name] = f"{name}.svg"
        figure.savefig(folder / names[name], metadata={"Date": None})
    return names


def _ratios(axes: Axes, document: Document) -> None:
    found = document["ratios"]
    places = range(len(found))
    axes.barh(places, [one["ratio"] for one in found], height=0.55, color="tab:blue")
    for place, one in zip(places, found, strict=True):
        axes.plot([one["low"], one["high"]], [place, place], color="black", linewidth=1)
        if one["aim"] is not None:
            axes.plot([one["aim"]] * 2, [place - 0.4, place + 0.4], color="tab:red")
    axes.set_yticks(places, [one["name"] for one in found])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("ratio; black: of single runs, red: the goal")


def _curves(label: str, xlabel: str) -> Callable[[Axes, Document], None]:
    def plot(axes: Axes, document: Document) -> None:
        for name, points in document["rates"].items():
            counts, rates = zip(*points, strict=True)
            axes.plot(counts, rates, marker="o", label=f"{label}{name}")
        axes.set_xscale("log", base=2 if max(counts) <= 64 else 10)
        axes.set_ylim(bottom=0)
        axes.set_xlabel(xlabel)
        axes.set_ylabel("events/s")
        axes.legend()

    return plot


def _growth(axes: Axes, document: Document) -> None:
    found: Sequence[Document] = document["growth"]
    axes.plot([one["keys"] for one in found], [one["batch_seconds"] for one in found], marker="o")
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("keys that hold a partial match")
    axes.set_ylabel("seconds a batch")


def _latency(axes: Axes, document: Document) -> None:
    cells = document["latency"]
    for job in dict.fromkeys(cell["job"] for cell in cells):
        waits = {cell["rate"]: cell["warm"]["event"].get("99th") for cell in cells
                 if cell["job"] == job}  # fmt: skip
        axes.plot([*waits], [*waits.values()], marker="o", label=job)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("events/s")
    axes.set_ylabel("99th percentile, seconds")
    axes.legend(fontsize=6)


def _history(axes: Axes, lines: Sequence[Mapping[str, str]]) -> None:
    versions = list(dict.fromkeys(f"{one['version']} {one['commit']}" for one in lines))
    for name in dict.fromkeys(f"{one['benchmark']}: {one['ratio_of']}" for one in lines):
        points = [
            (versions.index(f"{one['version']} {one['commit']}"), float(one["ratio"]))
            for one in lines
            if f"{one['benchmark']}: {one['ratio_of']}" == name
        ]
        axes.plot(*zip(*points, strict=True), marker="o", linewidth=0.9, label=name)
    axes.set_xticks(range(len(versions)), versions, rotation=20, fontsize=7)
    axes.set_yscale("log")
    axes.set_ylabel("ratio")
    axes.legend(fontsize=6)


_PLOTS: dict[str, Callable[[Axes, Document], None]] = {
    "throughput": _ratios,
    "payments": _ratios,
    "relevant": _ratios,
    "rules": _curves("", "rules"),
    "scaling": _curves("", "cores; state partitions on all cores"),
    "state-growth": _growth,
    "latency": _latency,
}
