"""Whether a figure is flat over time.

A line through the medians of equal pieces of the time (of the minima for what a collector frees in
bursts), with the Theil–Sen slope: the median of the slopes of all pairs of points, which single
outliers do not move. Flat: over an hour the line would rise by no more than a tenth of the median,
or by no more than a floor that stands for the noise of the figure itself; or zero lies within the
slope's 95 % confidence interval, by the distribution of Kendall's statistic (Sen 1968). Only a rise
counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

MOST_RISE = 0.10
_PIECES = 30
_LEAST_PIECES = 8
_NORMAL_95 = 1.959964


@dataclass(frozen=True)
class Watched:
    """A figure that must be flat. ``floor``: a rise an hour that does not count, in its unit."""

    name: str
    unit: str
    floor: float
    of_minima: bool = False


@dataclass(frozen=True)
class Trend:
    """What was found of one figure. ``slope`` and its interval are per hour."""

    name: str
    unit: str
    median: float
    slope: float
    low: float
    high: float
    flat: bool | None

    @property
    def rise(self) -> float:
        """The slope as a share of the median, an hour."""
        return self.slope / self.median if self.median else 0.0


def trend(watched: Watched, hours: Sequence[float], values: Sequence[float]) -> Trend:
    """The trend of a figure; ``flat`` is ``None`` with too few samples for a verdict."""
    x, y = _points(np.asarray(hours, float), np.asarray(values, float), watched.of_minima)
    median = float(np.median(y)) if len(y) else math.nan
    if len(x) < _LEAST_PIECES:
        return Trend(watched.name, watched.unit, median, math.nan, math.nan, math.nan, None)
    left, right = np.triu_indices(len(x), 1)
    slopes = np.sort((y[right] - y[left]) / (x[right] - x[left]))
    count = len(x)
    spread = _NORMAL_95 * math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    low = max(0, int((len(slopes) - spread) / 2))
    high = min(len(slopes) - 1, int((len(slopes) + spread) / 2))
    slope = float(np.median(slopes))
    allowed = max(MOST_RISE * abs(median), watched.floor)
    flat = slope <= allowed or float(slopes[low]) <= 0
    return Trend(
        watched.name,
        watched.unit,
        median,
        slope,
        float(slopes[low]),
        float(slopes[high]),
        flat,
    )


def _points(hours: np.ndarray, values: np.ndarray, minima: bool) -> tuple[np.ndarray, np.ndarray]:
    if not len(hours):
        return hours, values
    edges = np.linspace(hours[0], hours[-1], _PIECES + 1)
    pieces = np.clip(np.searchsorted(edges, hours, "right") - 1, 0, _PIECES - 1)
    used = np.unique(pieces)
    middle = (edges[:-1] + edges[1:]) / 2
    reduce = np.min if minima else np.median
    return middle[used], np.array([reduce(values[pieces == piece]) for piece in used])
