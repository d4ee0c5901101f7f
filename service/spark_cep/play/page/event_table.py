"""The table of events: AG Grid, with a column of what became of each event.

The grid reads keys that begin with a colon as JavaScript, so columns have numbers for keys: their
names are other people's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from nicegui import ui
from nicegui.events import GenericEventArguments

from spark_cep.play.trial import RowKind, TrialRow
from spark_cep.play.view import RowResult, TrialProblem

_CELL: Final = "c"
_STATES: Final = {
    "play-row-taken": "data.state === 'taken'",
    "play-row-passed": "data.state === 'passed over'",
    "play-row-late": "data.state === 'late' || (data.state || '').startsWith('dead letter')",
    "play-row-wrong": "!!data.wrong",
    "play-row-now": "!!data.now",
}
_OPTIONAL: Final = ("name", "input", "of_type")


class EventGrid:
    """The table.

    Args:
        changed: Is called when a person has changed a row.
        pointed: Is called with the place of the row that the cursor has gone to.
    """

    def __init__(self, changed: Callable[[], None], pointed: Callable[[int], None]) -> None:
        self._changed, self._pointed = changed, pointed
        self.rows: list[TrialRow] = []
        self.columns: list[str] = []
        self._results: Mapping[int, RowResult] = {}
        self._wrong: Mapping[int, str] = {}
        self._now: int | None = None
        self.grid = ui.aggrid(self._options(), theme="balham").classes("play-grid")
        self.grid.on("cellValueChanged", self._edited)
        self.grid.on("cellFocused", self._focused)

    def set(self, rows: Sequence[TrialRow], columns: Sequence[str]) -> None:
        """Show other rows, with these columns."""
        self.rows, self.columns = list(rows), list(dict.fromkeys(columns))
        self._results, self._wrong, self._now = {}, {}, None
        self._show_all()

    def add_column(self, name: str) -> None:
        """Add a column, where there is none of that name."""
        if name and name not in self.columns:
            self.columns.append(name)
            self._show_all()

    def add(self, kind: RowKind) -> None:
        """Add a row at the end: an event like the one before it, ten seconds later."""
        before = next((row for row in reversed(self.rows) if row.kind is RowKind.EVENT), TrialRow())
        if kind is RowKind.EVENT:
            self.rows.append(replace(before, at="+10 s" if self.rows else "0 s", name=""))
        else:
            at = "+1 minute" if kind in (RowKind.CLOCK, RowKind.WATERMARK) else ""
            self.rows.append(TrialRow(kind, at))
        self._show_all()
        self.grid.run_grid_method("ensureIndexVisible", len(self.rows) - 1)
        self._changed()

    async def delete(self) -> None:
        """Delete the rows that are chosen, or the one that the cursor is in."""
        chosen = {each["place"] for each in await self.grid.get_selected_rows()}
        if not chosen and self._now is not None:
            chosen = {self._now}
        if chosen:
            self.rows = [row for place, row in enumerate(self.rows) if place not in chosen]
            self._now = None
            self._show_all()
            self._changed()

    def show_results(
        self, results: Mapping[int, RowResult], problems: Sequence[TrialProblem]
    ) -> None:
        """Show what became of the events, and what is wrong with rows."""
        self._results = results
        self._wrong = {each.row: each.message for each in problems if each.row is not None}
        self._update(range(len(self.rows)))

    def point(self, place: int | None) -> None:
        """Show which row the page is about."""
        if place == self._now:
            return
        before, self._now = self._now, place
        self._update([each for each in (before, place) if each is not None])
        if place is not None and place < len(self.rows):
            self.grid.run_grid_method("ensureIndexVisible", place)

    def _options(self) -> dict[str, Any]:
        return {
            "columnDefs": self._column_defs(),
            "rowData": [self._data(place) for place in range(len(self.rows))],
            ":getRowId": "(params) => String(params.data.place)",
            "rowClassRules": _STATES,
            "rowSelection": {"mode": "multiRow", "checkboxes": False, "headerCheckbox": False,
                             "enableClickSelection": True},
            "singleClickEdit": False,
            "stopEditingWhenCellsLoseFocus": True,
            "suppressScrollOnNewData": True,
            "defaultColDef": {"editable": True, "sortable": False, "resizable": True,
                              "suppressMovable": True, "minWidth": 60},
            "rowHeight": 26,
            "headerHeight": 28,
        }  # fmt: skip

    def _column_defs(self) -> list[dict[str, Any]]:
        used = [name for name in _OPTIONAL if any(getattr(row, name) for row in self.rows)]
        kinds = [each.value for each in RowKind]
        return [
            {"headerName": "", "field": "number", "editable": False, "width": 44, "minWidth": 36,
             "pinned": "left", "cellClass": "play-number"},
            {"headerName": "what", "field": "kind", "width": 84, "cellEditor": "agSelectCellEditor",
             "cellEditorParams": {"values": kinds}},
            {"headerName": "at", "field": "at", "width": 96},
            *({"headerName": name.replace("_", " "), "field": name, "width": 90} for name in used),
            *({"headerName": name, "field": f"{_CELL}{number}", "flex": 1, "minWidth": 90}
              for number, name in enumerate(self.columns)),
            {"headerName": "result", "field": "state", "editable": False, "flex": 1,
             "minWidth": 110, "cellClass": "play-state", "tooltipField": "wrong"},
        ]  # fmt: skip

    def _data(self, place: int) -> dict[str, Any]:
        row, result = self.rows[place], self._results.get(place)
        data = {
            "place": place, "number": place + 1, "kind": row.kind.value, "at": row.at,
            "name": row.name, "input": row.input, "of_type": row.of_type,
            "state": "" if result is None else result.state,
            "wrong": self._wrong.get(place, ""), "now": place == self._now,
        }  # fmt: skip
        if data["wrong"]:
            data["state"] = data["wrong"]
        for number, name in enumerate(self.columns):
            data[f"{_CELL}{number}"] = row.cells.get(name, "")
        return data

    def _show_all(self) -> None:
        with self.grid.props.suspend_updates():
            self.grid.options.update(self._options())
        self.grid.update()

    def _update(self, places: Sequence[int] | range) -> None:
        rows = [self._data(place) for place in places if place < len(self.rows)]
        # For when the grid is made anew; now it keeps the cell that is at work.
        with self.grid.props.suspend_updates():
            self.grid.options["rowData"] = [self._data(place) for place in range(len(self.rows))]
        self.grid.run_grid_method("applyTransaction", {"update": rows})

    def _edited(self, event: GenericEventArguments) -> None:
        place, name = event.args["data"]["place"], event.args["colId"]
        value = str(event.args.get("newValue") or "")
        row = self.rows[place]
        if name.startswith(_CELL) and name[1:].isdecimal():
            cells = {**row.cells, self.columns[int(name[1:])]: value}
            row = replace(row, cells={name: text for name, text in cells.items() if text})
        elif name == "kind":
            row = replace(row, kind=RowKind(value))
        elif name in ("at", *_OPTIONAL):
            row = replace(row, **{name: value})
        self.rows[place] = row
        self._changed()

    def _focused(self, event: GenericEventArguments) -> None:
        place = event.args.get("rowIndex")
        if isinstance(place, int) and 0 <= place < len(self.rows):
            self._pointed(place)
