"""Event time as people see it: log, metrics and the page ``/rules`` say when the watermark is ahead
of the clock, and when it stands while events wait for it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice

from spark_cep.config import Settings
from spark_cep.durations import format_duration
from spark_cep.observability import metric_names as names
from spark_cep.observability.logs import logger
from spark_cep.observability.metrics import Metrics
from spark_cep.pipeline.driver.observe.event_time import event_time_text
from spark_cep.pipeline.driver.observe.progress import BatchReport
from spark_cep.pipeline.match.watermark import BEGINNING, END
from spark_cep.pipeline.wire.control import Partition

_log = logger(__name__)
#: A watermark that has not moved for so long while events wait stands.
_STANDS_SECONDS = 5.0
#: It is said again after so long; of one that has moved in between, after a minute.
_AGAIN_AFTER_SECONDS, _ANOTHER_AFTER_SECONDS = 600.0, 60.0
#: Clocks differ by less.
_AHEAD_SECONDS = 60.0
#: Seconds of the years 2001 to 2033, as milliseconds: days of January 1970.
_IN_1970_FROM, _IN_1970_UNTIL = 1_000_000_000, 2_000_000_000
_MOST_PARTITIONS, _MOST_NAMED = 20, 3


@dataclass(frozen=True, slots=True)
class _Known:
    """Event time since the last batch. ``unmoved_since``: the monotonic second since when events
    have waited and the watermark has not moved; ``None``: no event waits."""

    watermark: int = BEGINNING
    newest: int | None = None
    waiting: int = 0
    unmoved_since: float | None = None


class EventTimeWatch:
    """Watches event time in one run. Batches come on Spark's thread, looks on the supervisor's,
    and the page is read on any."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self._time = settings.time
        self._metrics = metrics
        self._known = _Known()
        self._watermark_seconds = math.nan
        self._batch_began: float | None = None
        #: The partitions that hold the watermark back.
        self._holding: tuple[str, ...] = ()
        self._shown: Mapping[tuple[str, ...], float] = {}
        self._said_at = -math.inf
        self._said_of: float | None = None
        self._is_ahead = False
        self._said_of_1970 = False
        metrics.follow(names.WATERMARK_LAG, lambda: self._behind(1))
        metrics.follow(names.WATERMARK_AHEAD, lambda: self._behind(-1))
        metrics.follow(names.WATERMARK_UNMOVED, self._unmoved_seconds)

    def batch_started(self) -> None:
        """A batch runs; until it ends, nothing new is known."""
        self._batch_began = time.monotonic()

    def query_ended(self) -> None:
        """No batch runs any longer."""
        self._batch_began = None

    def batch_done(self, report: BatchReport) -> None:
        """Take in the event time of a batch."""
        since, before = None, self._known
        if report.waiting:
            since = before.unmoved_since
            if since is None or report.watermark != before.watermark:
                since = time.monotonic()
        newest = max((at for _, at in report.maxima if at is not None), default=None)
        self._known = _Known(report.watermark, newest, report.waiting, since)
        self._batch_began = None
        if BEGINNING < report.watermark < END:
            self._watermark_seconds = report.watermark / 1000
            self._warn_of_time_ahead(report)
        self._warn_of_seconds(report)

    def look(self, holding: Mapping[Partition, int | None]) -> None:
        """Show and say what holds the watermark back, if it stands: ``holding`` are the partitions
        that are waited for."""
        held = sorted(holding)[:_MOST_PARTITIONS]
        self._holding = tuple(f"{topic}/{number}" for topic, number in held)
        stands = self._unmoved_seconds() >= _STANDS_SECONDS
        shown: Mapping[tuple[str, ...], float] = (
            {(topic, str(number)): 1.0 for topic, number in held} if stands else {}
        )
        if shown != self._shown:
            self._metrics.replace(names.WATERMARK_HELD, shown)
            self._shown = shown
        if stands:
            self._say_what_waits()

    def page(self) -> dict[str, object]:
        """Event time on the page ``/rules``; ``note``: what is wrong with it, and what to do."""
        known, unmoved, ahead = self._known, self._unmoved_seconds(), self._behind(-1)
        stands = unmoved >= _STANDS_SECONDS
        note = None
        if ahead > _AHEAD_SECONDS:
            note = (
                f"the watermark is {_rounded(ahead)} ahead of the clock, so events of now are"
                " late: correct the producer's clock, then wait, or stop the job and run"
                " spark-cep reset-clock"
            )
        elif stands:
            held = f", held back by {_named(self._holding)}" if self._holding else ""
            note = (
                f"{known.waiting} events wait for the watermark, which has stood for"
                f" {_rounded(unmoved)}{held}; it is moved by {self._moved_by()}"
            )
        return {
            "watermark": event_time_text(known.watermark),
            "newest_event": event_time_text(known.newest),
            "ahead_seconds": None if math.isnan(ahead) else round(ahead),
            "events_waiting": known.waiting,
            "stands_since": _clock_text(time.time() - unmoved) if stands else None,
            "held_by": list(self._holding) if stands else [],
            "note": note,
        }

    def _behind(self, sign: int) -> float:
        """Seconds that the watermark is behind the clock, or, with ``sign`` -1, ahead of it."""
        behind = sign * (time.time() - self._watermark_seconds)
        # Of 0 and NaN max() gives 0, and a job that knows nothing would seem to be up to date.
        return behind if math.isnan(behind) else max(0.0, behind)

    def _unmoved_seconds(self) -> float:
        since, began = self._known.unmoved_since, self._batch_began
        if since is None:
            return 0.0
        return max(0.0, (time.monotonic() if began is None else began) - since)

    def _moved_by(self) -> str:
        settings = self._time
        if self._holding:
            idle = format_duration(settings.partition_idle_after)
            return (
                f"newer events there, or {idle} without any record"
                " there (time.partition_idle_after)"
            )
        if settings.advance_when_idle is None:
            return (
                f"an event that is more than {format_duration(settings.allowed_disorder)} newer;"
                " with time.advance_when_idle the clock, too"
            )
        idle = format_duration(settings.advance_when_idle)
        return f"a newer event, or the clock after {idle} without any"

    def _warn_of_time_ahead(self, report: BatchReport) -> None:
        ahead = self._behind(-1)
        if ahead > _AHEAD_SECONDS and not self._is_ahead:
            now = time.time() * 1000
            partitions = _newest(report, lambda at: at > now)
            _log.warning(
                "watermark_ahead",
                watermark=event_time_text(report.watermark),
                ahead_seconds=round(ahead),
                partitions=partitions,
            )
        self._is_ahead = ahead > _AHEAD_SECONDS

    def _warn_of_seconds(self, report: BatchReport) -> None:
        if self._said_of_1970:
            return
        partitions = _newest(report, lambda at: _IN_1970_FROM <= at < _IN_1970_UNTIL)
        if partitions:
            self._said_of_1970 = True
            _log.warning(
                "event_time_in_1970",
                newest=event_time_text(self._known.newest),
                partitions=partitions,
                instead="event_time_unit: seconds of the input, if these are seconds since 1970",
            )

    def _say_what_waits(self) -> None:
        known, now = self._known, time.monotonic()
        same = known.unmoved_since == self._said_of
        if now - self._said_at < (_AGAIN_AFTER_SECONDS if same else _ANOTHER_AFTER_SECONDS):
            return
        self._said_at, self._said_of = now, known.unmoved_since
        _log.info(
            "events_wait",
            events=known.waiting,
            stands_seconds=round(self._unmoved_seconds()),
            newest=event_time_text(known.newest),
            watermark=event_time_text(known.watermark),
            held_by=list(self._holding),
            moved_by=self._moved_by(),
        )


def _newest(report: BatchReport, chosen: Callable[[int], bool]) -> list[str]:
    """The first partitions of a batch whose newest event time is ``chosen``."""
    times = ((partition, at) for partition, at in report.maxima if at is not None)
    found = (f"{topic}/{number}" for (topic, number), at in times if chosen(at))
    return [*islice(found, _MOST_PARTITIONS)]


def _rounded(seconds: float) -> str:
    return format_duration(round(seconds) * 1000)


def _clock_text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _named(partitions: tuple[str, ...]) -> str:
    more = len(partitions) - _MOST_NAMED
    named = ", ".join(partitions[:_MOST_NAMED])
    return f"{named} and {more} more" if more > 0 else named
