"""Steps through events: the automaton with the partial matches on it, and the why-text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from nicegui import ui

from spark_cep.play.page.automaton import Automaton
from spark_cep.play.view import DrawnPartial, Fate, KeyMoment, Played

_ALL: Final = "all keys"
_NO_KEY: Final = "(no key)"
_MOST_LISTED: Final = 30


class Stepper:
    """The drawing, a slider over events and deadlines, and what the one at hand did.

    Args:
        moved: Is called with the frame that is shown.
    """

    def __init__(self, moved: Callable[[KeyMoment | None], None]) -> None:
        self._moved = moved
        self._played = Played()
        self._at: int | None = None
        with ui.element("section").classes("play-card play-drawing"):
            self.automaton = Automaton()
            self._conditions = ui.label().classes("play-conditions")
        with ui.element("section").classes("play-card play-step"):
            with ui.element("div").classes("play-controls"):
                self._first = self._button(
                    "first_page", "first", lambda: self._by(-len(self._places))
                )
                self._previous = self._button("chevron_left", "previous", lambda: self._by(-1))
                self._next = self._button("chevron_right", "next", lambda: self._by(1))
                self._slider = ui.slider(
                    min=0, max=0, step=1, on_change=lambda e: self._slid(e.value)
                )
                self._slider.classes("play-slider").props("dense")
                self._count = ui.label().classes("play-count")
                self._key = ui.select([_ALL], value=_ALL, on_change=self._filtered)
                self._key.classes("play-key").props("dense options-dense borderless")
            self._title = ui.label().classes("play-title")
            self._why = ui.label().classes("play-why")
            self._partials = ui.element("div").classes("play-partials")
        self._places: list[int] = []
        self._keys: list[str | None] = []

    @staticmethod
    def _button(icon: str, name: str, clicked: Callable[[], None]) -> ui.button:
        button = ui.button(icon=icon, on_click=clicked).props("flat dense round size=sm")
        return button.props(f"aria-label={name}").classes(f"play-{name}")

    def show(self, played: Played) -> None:
        """Show another result, at the event at which the page was."""
        before = self.frame
        self._played = played
        self.automaton.draw(played.drawn)
        notes = () if played.drawn is None else played.drawn.notes
        self._conditions.set_text("\n".join(notes))
        self._keys = list(dict.fromkeys(frame.key for frame in played.frames))
        self._key.set_options([_ALL, *map(_key_text, self._keys)])
        if self._key.value not in self._key.options:
            self._key.set_value(_ALL)
        self._filter()
        same = (place for place in self._places if _is_same(before, played.frames[place]))
        self.go(next(same, next(iter(self._places), None)))

    @property
    def frame(self) -> KeyMoment | None:
        """The event or deadline at hand."""
        return None if self._at is None else self._played.frames[self._at]

    def go(self, place: int | None) -> None:
        """Show the frame at a place among all."""
        if place is not None and place not in self._places:
            self._key.set_value(_ALL)
        self._at = place
        at = self._places.index(place) if place is not None else 0
        self._slider.set_value(at)
        self._tell()

    def go_to_row(self, row: int) -> None:
        """Show the frame of a row of the table, where it has one."""
        result = (self._played.rows or {}).get(row)
        if result is not None and result.frame is not None and result.frame != self._at:
            self.go(result.frame)

    def _filtered(self) -> None:
        self._filter()
        self.go(self._at if self._at in self._places else next(iter(self._places), None))

    def _filter(self) -> None:
        wanted = self._key.value
        self._places = [
            place
            for place, frame in enumerate(self._played.frames)
            if wanted in (_ALL, _key_text(frame.key))
        ]
        if self._at not in self._places:
            self._at = None
        self._slider.props(f"max={max(len(self._places) - 1, 0)}")

    def _slid(self, value: float | None) -> None:
        if value is None or not self._places:
            return
        place = self._places[min(int(value), len(self._places) - 1)]
        if place != self._at:
            self._at = place
            self._tell()

    def _by(self, count: int) -> None:
        if self._at is not None:
            at = self._places.index(self._at) + count
            self.go(self._places[min(max(at, 0), len(self._places) - 1)])

    def _tell(self) -> None:
        frame, count = self.frame, len(self._places)
        at = self._places.index(self._at) if self._at is not None else 0
        self._count.set_text(f"{at + 1} / {count}" if count else "")
        for button, can in (
            (self._first, at > 0),
            (self._previous, at > 0),
            (self._next, at < count - 1),
        ):
            button.set_enabled(can)
        self.automaton.place(() if frame is None else frame.tokens)
        self._title.set_text(_title(frame))
        self._why.set_text("" if frame is None else "\n".join(self._lines(frame)))
        self._list(() if frame is None else frame.tokens)
        self._moved(frame)

    def _lines(self, frame: KeyMoment) -> list[str]:
        lines = list(frame.lines)
        if frame is self._last_of_key(frame):
            verdict = (self._played.verdicts or {}).get(frame.key, ())
            lines += ["", *verdict] if verdict else []
        return lines

    def _last_of_key(self, frame: KeyMoment) -> KeyMoment:
        return next(each for each in reversed(self._played.frames) if each.key == frame.key)

    def _list(self, tokens: tuple[DrawnPartial, ...]) -> None:
        self._partials.clear()
        with self._partials:
            for token in tokens[:_MOST_LISTED]:
                with ui.element("div").classes("play-partial"):
                    ui.label(str(token.number)).classes(f"play-badge {_class(token.fate)}")
                    ui.label(token.held)
                    ui.label(token.fate.value).classes("play-fate")
            if len(tokens) > _MOST_LISTED:
                ui.label(f"and {len(tokens) - _MOST_LISTED} more")


def _is_same(before: KeyMoment | None, frame: KeyMoment) -> bool:
    """Return whether a frame is of the same event or deadline as one of the result before."""
    here = frame.key, frame.row, frame.time
    return before is not None and here == (before.key, before.row, before.time)


def _class(fate: Fate) -> str:
    return "play-" + fate.value.replace(" ", "-")


def _key_text(key: str | None) -> str:
    return _NO_KEY if key is None else key


def _title(frame: KeyMoment | None) -> str:
    if frame is None:
        return "No event yet: write some into the table, or open a file"
    row = "" if frame.row is None else f"row {frame.row + 1}"
    key = "" if frame.key is None else f"key {frame.key}"
    return " · ".join(filter(None, (frame.at, row, key, frame.state, frame.title)))
