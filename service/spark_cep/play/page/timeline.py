"""The timeline: a line for each key, with its events, matches, timeouts and what is open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from nicegui import ui
from nicegui.events import GenericEventArguments

from spark_cep.play.page import colours
from spark_cep.play.view import KeyMoment, Played, SpanKind, TimeSpan

_COLOURS: Final = {
    SpanKind.MATCH: colours.MATCH,
    SpanKind.TIMEOUT: colours.TIMEOUT,
    SpanKind.OPEN: colours.OPEN,
}
_MOST_SPANS: Final = 300
_HIGH: Final = 22
#: A span is a bar from its start to its end in the line of its key.
_BAR: Final = """(params, api) => {
  const start = api.coord([api.value(0), api.value(2)]);
  const end = api.coord([api.value(1), api.value(2)]);
  const y = start[1] - 3 + api.value(3) * 6;
  return {type: 'rect',
    shape: {x: start[0], y: y, width: Math.max(end[0] - start[0], 3), height: 4, r: 2},
    style: {fill: api.visual('color')}};
}"""
_SECONDS: Final = """(value) => {
  const whole = Math.round(value * 1000) / 1000;
  const sign = whole < 0 ? '-' : '', s = Math.abs(whole);
  if (s < 60) return sign + s + ' s';
  const parts = [[86400, 'd'], [3600, 'h'], [60, 'm'], [1, 's']], found = [];
  let rest = s;
  for (const [size, unit] of parts) {
    const n = size === 1 ? Math.round(rest * 1000) / 1000 : Math.floor(rest / size);
    if (n) found.push(n + ' ' + unit);
    rest -= n * size;
  }
  return sign + found.slice(0, 2).join(' ');
}"""


class Timeline:
    """The chart. ``pointed`` is called with the place of the frame that a person clicks at."""

    def __init__(self, pointed: Callable[[int], None]) -> None:
        self._pointed = pointed
        self._played, self._start, self._dark = Played(), 0, False
        self._frame: KeyMoment | None = None
        self.chart = ui.echart({"series": []}).classes("play-timeline")
        self.chart.on("componentClick", self._clicked, ["data"])

    def show(self, played: Played, start: int) -> None:
        """Show a result. ``start``: of the trial, in microseconds since 1970."""
        self._played, self._start, self._frame = played, start, None
        self._draw()

    def dark(self, dark: bool) -> None:
        """Set the colours."""
        self._dark = dark
        self._draw()

    def point(self, frame: KeyMoment | None) -> None:
        """Show the time of a frame."""
        self._frame = frame
        line = self._now()
        self.chart.run_chart_method(
            "setOption", {"series": [{"id": "now", "markLine": {"data": line}}]}
        )

    def _draw(self) -> None:
        options = self._options()
        self.chart.options.clear()
        self.chart.options.update(options)
        height = 64 + _HIGH * max(len(options["yAxis"]["data"]), 1)
        self.chart.style(f"height: {height}px")
        self.chart.update()

    def _options(self) -> dict[str, Any]:
        keys = list(dict.fromkeys([frame.key for frame in self._played.frames]))
        lines = {key: place for place, key in enumerate(keys)}
        text = {"color": colours.TEXT[self._dark], "fontSize": 11}
        grid_line = {"lineStyle": {"color": colours.GRID[self._dark]}}
        return {
            "animation": False,
            "grid": {"left": 8, "right": 30, "top": 8, "bottom": 8, "containLabel": True},
            "tooltip": {"renderMode": "richText", "confine": True, "textStyle": {"fontSize": 11},
                        ":formatter": "(params) => params.data.text"},
            "xAxis": {"type": "value", "axisLabel": {**text, ":formatter": _SECONDS,
                      "hideOverlap": True}, "splitLine": grid_line, "axisLine": {"show": False},
                      "minInterval": 0.001, "min": "dataMin", "max": "dataMax"},
            "yAxis": {"type": "category", "inverse": True, "axisLabel": {**text, "width": 110,
                      "overflow": "truncate"}, "axisTick": {"show": False},
                      "axisLine": {"show": False}, "splitLine": {"show": True, **grid_line},
                      "data": ["(no key)" if key is None else str(key) for key in keys]},
            "series": [*self._spans(lines), self._events(lines)],
        }  # fmt: skip

    def _spans(self, lines: Mapping[str | None, int]) -> list[dict[str, Any]]:
        found: dict[SpanKind, list[dict[str, Any]]] = {kind: [] for kind in SpanKind}
        lanes: dict[str | None, int] = {}
        for span in self._played.spans[:_MOST_SPANS]:
            if span.key in lines:
                lane = lanes[span.key] = lanes.get(span.key, -1) + 1
                found[span.kind].append(self._span(span, lines[span.key], lane % 3 - 1))
        return [
            {"type": "custom", "name": kind.value, ":renderItem": _BAR, "data": data,
             "itemStyle": {"color": _COLOURS[kind]}, "encode": {"x": [0, 1], "y": 2}}
            for kind, data in found.items()
        ]  # fmt: skip

    def _span(self, span: TimeSpan, line: int, lane: int) -> dict[str, Any]:
        end = self._played.now if span.end is None else span.end
        value = [self._seconds(span.start), self._seconds(max(end, span.start)), line, lane]
        return {
            "value": value,
            "text": "\n".join((span.title, *span.lines)),
            "frame": span.frame,
        }

    def _events(self, lines: Mapping[str | None, int]) -> dict[str, Any]:
        data = [
            {
                "value": [self._seconds(frame.time), lines[frame.key]],
                "text": f"{frame.at}, row {frame.row + 1}: {frame.state}\n{frame.title}",
                "frame": place,
                "symbol": "emptyCircle" if frame.state != "taken" else "circle",
            }
            for place, frame in enumerate(self._played.frames)
            if frame.row is not None
        ]
        line = {"color": colours.NOW, "type": "solid", "width": 1.5}
        return {
            "id": "now", "type": "scatter", "name": "event", "symbolSize": 8, "data": data, "z": 5,
            "itemStyle": {"color": colours.EVENT},
            "markLine": {"silent": True, "symbol": "none", "label": {"show": False},
                         "lineStyle": line, "data": self._now()},
        }  # fmt: skip

    def _now(self) -> list[dict[str, float]]:
        return [] if self._frame is None else [{"xAxis": self._seconds(self._frame.time)}]

    def _seconds(self, micros: int) -> float:
        return (micros - self._start) / 1_000_000

    def _clicked(self, event: GenericEventArguments) -> None:
        data = event.args.get("data")
        if isinstance(data, dict) and isinstance(data.get("frame"), int):
            self._pointed(data["frame"])


def legend() -> Sequence[tuple[str, str]]:
    """The colours, and what each stands for."""
    return [*((kind.value, colour) for kind, colour in _COLOURS.items()), ("event", colours.EVENT)]
