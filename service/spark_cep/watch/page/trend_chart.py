"""The chart of throughput, lag and latency over the last minutes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from nicegui import ui

from spark_cep.play.page import colours
from spark_cep.watch.figures import TrendPoint

_MOST_POINTS: Final = 240
_LEFT: Final = ("0.5%", "25%", "49.5%")
#: The title of the last one is the longest.
_WIDTH: Final = ("23.5%", "23.5%", "50%")


class TrendChart:
    """Three lines of the last two minutes, side by side."""

    def __init__(self) -> None:
        self._dark = False
        self._points: Sequence[TrendPoint] = ()
        self._chart = ui.echart({"series": []}).classes("play-timeline watch-trend-chart")
        self._chart.style("height: 120px")

    def dark(self, dark: bool) -> None:
        """Set the colours."""
        self._dark = dark
        self._draw()

    def show(self, points: Sequence[TrendPoint]) -> None:
        """Show the newest of these points."""
        self._points = points[-_MOST_POINTS:]
        self._draw()

    def _draw(self) -> None:
        options = self._options()
        self._chart.options.clear()
        self._chart.options.update(options)
        self._chart.update()

    def _options(self) -> dict[str, Any]:
        text = {"color": colours.TEXT[self._dark], "fontSize": 11}
        line = {"lineStyle": {"color": colours.GRID[self._dark]}}
        title = text | {"fontWeight": 500}
        names = ("records/s", "lag, records", "latency, s; dotted: 95 %, grey: batch")
        places = range(len(names))
        return {
            "animation": False,
            "title": [
                {"text": name, "left": _LEFT[at], "top": 2, "textStyle": title}
                for at, name in enumerate(names)
            ],
            "grid": [
                {"left": left, "width": width, "top": 26, "bottom": 6, "containLabel": True}
                for left, width in zip(_LEFT, _WIDTH, strict=True)
            ],
            "xAxis": [
                {"type": "value", "gridIndex": at, "show": False, "min": "dataMin",
                 "max": "dataMax"}
                for at in places
            ],
            "yAxis": [
                {"type": "value", "gridIndex": at, "min": 0, "splitNumber": 2, "axisLabel": text,
                 "splitLine": line}
                for at in places
            ],
            "series": [
                self._line(0, "rate", colours.OPEN, fill=True),
                self._line(1, "lag", colours.TIMEOUT, fill=True),
                self._line(2, "batch", colours.EVENT),
                self._line(2, "median", colours.MATCH),
                self._line(2, "percentile_95", colours.MATCH, dotted=True),
            ],
        }  # fmt: skip

    def _line(
        self, at: int, name: str, colour: str, *, fill: bool = False, dotted: bool = False
    ) -> dict[str, Any]:
        return {
            "type": "line", "xAxisIndex": at, "yAxisIndex": at, "showSymbol": False,
            "data": [[round(each.time, 1), _rounded(getattr(each, name))] for each in self._points],
            "lineStyle": {"color": colour, "width": 1.5, "type": "dotted" if dotted else "solid"},
            "areaStyle": {"color": colour, "opacity": 0.12} if fill else None,
            "itemStyle": {"color": colour},
        }  # fmt: skip


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
