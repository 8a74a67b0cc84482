"""Round numbers and durations for labels."""

from __future__ import annotations

import math
from datetime import timedelta


def whole_seconds(duration: timedelta) -> timedelta:
    """The length of a duration, rounded."""
    return timedelta(seconds=round(abs(duration.total_seconds())))


def round_steps(low: float, high: float, most: int) -> list[float]:
    """Round values between two numbers, at most `most` + 1."""
    span = high - low
    if span <= 0 or not math.isfinite(span) or most < 1:
        return []
    magnitude = 10.0 ** math.floor(math.log10(span / most))
    step = next((magnitude * one for one in (1, 2, 5, 10) if span / (magnitude * one) <= most), span)
    first = math.ceil(low / step)
    values = [(first + index) * step for index in range(most + 1)]
    return [value for value in values if low <= value <= high]


def value_text(value: float) -> str:
    """`1234`, `0.25`, `12k`, `3.2M`: at most seven characters or so."""
    size = abs(value)
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if size >= limit:
            amount = value / {"G": 1e9, "M": 1e6, "k": 1e3}[unit]
            return f"{amount:.3g}{unit}" if size < 1e12 else f"{value:.2e}"
    return f"{value:.4g}"
