"""The functions of calc_rules give what their definitions say, and what Prometheus gives where both agree."""

from __future__ import annotations

from math import inf, isclose
from random import Random
from statistics import fmean, pstdev, quantiles

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.calc.functions import SeriesValue, Vector, value_of_group, value_of_series
from schemas.values.calc_function import parse_group_function, parse_series_function

SECOND = 1_000_000
NUMBERS = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30)


def vector(values: list[float], step: float = 10, end: float = 100) -> Vector:
    """Values `step` seconds apart, the last at `end`."""
    first = end - step * (len(values) - 1)
    ts = [int((first + step * number) * SECOND) for number in range(len(values))]
    return Vector(ts, values, ts[-1])


def of_series(text: str, values: list[float], end: float = 100) -> float | None:
    return value_of_series(parse_series_function(text), vector(values), int(end * SECOND))


def of_group(text: str, *values: SeriesValue) -> float | None:
    return value_of_group(parse_group_function(text), values)


@pytest.mark.parametrize(
    ("function", "values", "expected"),
    [
        ("last", [1, 2, 3], 3),
        ("avg", [1, 2, 6], 3),
        ("min", [3, 1, 2], 1),
        ("max", [1, 3, 2], 3),
        ("sum", [0.1] * 10, 1.0),
        ("count", [5, 5], 2),
        ("stddev", [2, 4, 4, 4, 5, 5, 7, 9], 2),
        ("increase", [100, 130, 20, 50], 30 + 20 + 30),
        ("rate", [100, 130, 20, 50], 80 / 30),
        ("delta", [100, 130, 20, 50], -50),
        ("changes", [1, 1, 2, 1, 1], 2),
        ("quantile(0.5)", [1, 2, 3, 10], 2.5),
        ("quantile(0)", [3, 1, 2], 1),
        ("quantile(1)", [3, 1, 2], 3),
        ("predict_linear(1h)", [10, 9, 8, 7], 7 - 360),
        ("rate", [1], None),
        ("increase", [1], None),
        ("delta", [1], None),
        ("predict_linear(1h)", [1], None),
    ],
)
def test_a_function_over_a_series(function: str, values: list[float], expected: float | None) -> None:
    found = of_series(function, values)
    assert found == expected or (found is not None and expected is not None and isclose(found, expected))


def test_absent_for_counts_from_the_newest_arrival() -> None:
    assert of_series("absent_for", [1, 2], end=160) == 60


def test_values_that_are_too_large_have_no_result() -> None:
    assert of_series("sum", [1e308, 1e308]) is None
    assert of_series("stddev", [1e200, -1e200]) is None


@given(NUMBERS)
def test_functions_agree_with_the_standard_library(values: list[float]) -> None:
    for function, expected in (("avg", fmean(values)), ("stddev", pstdev(values))):
        found = of_series(function, values)
        assert found is not None
        assert isclose(found, expected, rel_tol=1e-9, abs_tol=1e-6)
    if len(values) > 1:
        cuts = quantiles(values, n=20, method="inclusive")
        found = of_series("quantile(0.95)", values)
        assert found is not None
        assert isclose(found, cuts[-1], rel_tol=1e-9, abs_tol=1e-6)


@given(NUMBERS, st.randoms())
def test_the_order_of_the_series_of_a_group_changes_nothing(values: list[float], random: Random) -> None:
    series = [SeriesValue(value) for value in values]
    mixed = random.sample(series, len(series))
    for function in ("sum", "avg", "stddev", "quantile(0.3)", "min", "max", "count"):
        assert of_group(function, *series) == of_group(function, *mixed)


def buckets(**counts: float) -> list[SeriesValue]:
    return [SeriesValue(count, float(bound[1:].replace("_", "."))) for bound, count in counts.items()]


@pytest.mark.parametrize(
    ("fraction", "expected"),
    # Expected values follow from the definition of histogram_quantile in the manual of Prometheus.
    [(0.5, 0.1 + 0.1 * (50 - 20) / (60 - 20)), (0.1, 0.05), (0.9, 0.4), (1, 0.4), (0.8, 0.4)],
)
def test_a_quantile_of_a_histogram_is_linear_inside_its_bucket(fraction: float, expected: float) -> None:
    series = [*buckets(b0_1=20, b0_2=60, b0_4=80), SeriesValue(100, inf)]
    found = of_group(f"histogram_quantile({fraction})", *series)
    assert found is not None
    assert isclose(found, expected)


def test_a_histogram_needs_the_bucket_without_a_bound() -> None:
    assert of_group("histogram_quantile(0.5)", *buckets(b0_1=20, b0_2=60)) is None
    assert of_group("histogram_quantile(0.5)", *buckets(b0_1=0), SeriesValue(0, inf)) is None
