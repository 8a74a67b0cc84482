from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.engine.windows import BUCKETS, Buckets, Reduce, Window
from tests.rules.engine.scenario import T0

REDUCES: list[Reduce] = ["avg", "min", "max", "sum", "count", "rate"]
OVER = timedelta(minutes=10)


def naive(reduce: Reduce, points: list[tuple[int, float]]) -> float | None:
    values = [value for _, value in points]
    if reduce == "rate":
        elapsed = points[-1][0] - points[0][0]
        return (values[-1] - values[0]) / elapsed if elapsed else None
    return {
        "avg": sum(values) / len(values),
        "min": min(values),
        "max": max(values),
        "sum": sum(values),
        "count": float(len(values)),
    }[reduce]


@given(
    st.sampled_from(REDUCES),
    st.lists(st.tuples(st.integers(0, 200), st.integers(-1000, 1000).map(float)), min_size=1, max_size=60),
)
def test_a_window_has_the_result_of_its_datapoints(reduce: Reduce, waits: list[tuple[int, float]]) -> None:
    """Times are seconds. Values are whole numbers, so sums are exact. A bucket is ten seconds."""
    window, buckets, second = Window(OVER, reduce), (), 0
    points: list[tuple[int, float]] = []
    kept: Buckets = buckets
    for wait, value in waits:
        second += wait
        points.append((second, value))
        at = T0 + timedelta(seconds=second)
        kept = window.add(kept, value, at)
        # Whole buckets count: those that began less than ten minutes ago.
        live = [point for point in points if point[0] // 10 > second // 10 - BUCKETS]
        assert window.amount(kept, value, at, at) == pytest.approx(naive(reduce, live))
        assert len(kept) <= BUCKETS


def test_a_window_without_datapoints_has_no_result_and_the_count_zero() -> None:
    later = T0 + timedelta(hours=1)
    for reduce in REDUCES:
        window = Window(OVER, reduce)
        kept = window.add((), 5, T0)
        assert window.amount(kept, 5, T0, later) == (0.0 if reduce == "count" else None)


def test_texts_are_counted_and_otherwise_ignored() -> None:
    count, average = Window(OVER, "count"), Window(OVER, "avg")
    assert count.amount(count.add((), "on", T0), "on", T0, T0) == 1.0
    assert average.add((), "on", T0) == ()


def test_a_result_that_json_cannot_hold_is_no_result() -> None:
    window = Window(OVER, "sum")
    kept = window.add(window.add((), 1e308, T0), 1e308, T0)
    assert window.amount(kept, 1e308, T0, T0) is None


def test_a_window_never_has_more_than_its_buckets() -> None:
    window, kept = Window(OVER, "sum"), Buckets()
    for place in range(3 * BUCKETS):
        kept = window.add(kept, 1, T0 + timedelta(seconds=10 * place))
    assert len(kept) == BUCKETS
