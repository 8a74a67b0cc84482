"""Metrics: counted exactly, and read back unchanged by the parser of Prometheus."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from tocsin.core.metrics import Family, Metrics, format_metrics


def samples(metrics: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(format_metrics([metrics]))
        for sample in family.samples
    }


def test_an_exposition_has_help_type_and_values() -> None:
    metrics = Metrics()
    fires = metrics.counter("tocsin_fires_total", 'what "fired"\nwith a \\', "kind")
    fires.add(2, "watchdog")
    fires.add(1, "watchdog")
    metrics.gauge("tocsin_offset_seconds", "an offset").set(-0.25)
    assert format_metrics([metrics]) == (
        '# HELP tocsin_fires_total what "fired"\\nwith a \\\\\n'
        "# TYPE tocsin_fires_total counter\n"
        'tocsin_fires_total{kind="watchdog"} 3\n'
        "# HELP tocsin_offset_seconds an offset\n"
        "# TYPE tocsin_offset_seconds gauge\n"
        "tocsin_offset_seconds -0.25\n"
    )
    counter, gauge = text_string_to_metric_families(format_metrics([metrics]))
    assert (counter.type, counter.documentation) == ("counter", 'what "fired"\nwith a \\')
    assert (gauge.type, gauge.documentation) == ("gauge", "an offset")


@given(st.lists(st.tuples(st.text(), st.text()), min_size=1, max_size=5, unique=True))
def test_any_text_survives_as_a_label(label_pairs: list[tuple[str, str]]) -> None:
    metrics = Metrics()
    gauge = metrics.gauge("g", "help", "one", "two")
    for number, labels in enumerate(label_pairs):
        gauge.set(number, *labels)
    assert samples(metrics) == {
        ("g", (("one", one), ("two", two))): number for number, (one, two) in enumerate(label_pairs)
    }


@pytest.mark.parametrize("value", [0, 1, -3.5, 1e-9, 12345678901234, 1e300, math.inf, -math.inf])
def test_any_value_survives(value: float) -> None:
    metrics = Metrics()
    metrics.gauge("g", "help").set(value)
    assert samples(metrics) == {("g", ()): value}


def test_a_value_that_is_not_a_number_is_written_as_nan() -> None:
    metrics = Metrics()
    metrics.gauge("g", "help").follow(lambda: math.nan)
    assert math.isnan(samples(metrics)["g", ()])


@given(st.lists(st.floats(min_value=0, max_value=1000, allow_nan=False), max_size=50))
def test_a_histogram_counts_each_value_in_every_bucket_whose_bound_is_at_least_the_value(
    values: list[float],
) -> None:
    metrics = Metrics()
    histogram = metrics.histogram("h_seconds", "help", "kind")
    half = len(values) // 2
    histogram.observe_all(values[:half], "a")
    histogram.observe_all(values[half:], "a")
    found = samples(metrics)
    buckets = {
        float(dict(labels)["le"]): count
        for (name, labels), count in found.items()
        if name == "h_seconds_bucket"
    }
    assert buckets == {bound: sum(value <= bound for value in values) for bound in buckets}
    assert math.inf in buckets
    assert found["h_seconds_count", (("kind", "a"),)] == len(values)
    assert found["h_seconds_sum", (("kind", "a"),)] == pytest.approx(sum(values))


def test_a_counter_without_counts_is_0_and_one_with_labels_is_omitted() -> None:
    metrics = Metrics()
    metrics.counter("a_total", "help")
    metrics.counter("b_total", "help", "kind")
    metrics.gauge("c", "help")
    assert samples(metrics) == {("a_total", ()): 0}


def test_a_gauge_with_a_function_is_read_at_each_scrape_until_it_is_removed() -> None:
    metrics = Metrics()
    gauge = metrics.gauge("g", "help", "role")
    values = iter((1, 2))
    gauge.follow(lambda: next(values), "clock")
    assert [samples(metrics)["g", (("role", "clock"),)] for _ in range(2)] == [1, 2]
    gauge.forget("clock")
    assert samples(metrics) == {}


def test_metrics_that_prometheus_would_reject_or_misread_cannot_be_created() -> None:
    metrics = Metrics()
    metrics.gauge("g", "help")
    for wrong in (
        lambda: metrics.gauge("g", "twice"),
        lambda: metrics.counter("fires", "no _total"),
        lambda: metrics.gauge("with-dash", "help"),
        lambda: metrics.gauge("fine", "help", "no-label"),
        lambda: metrics.counter("x_total", "help").add(-1),
        lambda: metrics.gauge("y", "help", "kind").set(1),
        lambda: metrics.gauge("z", "help").set(1, "kind"),
    ):
        with pytest.raises(ValueError):
            wrong()
    with pytest.raises(NotImplementedError):
        Family("f", "help", ()).samples()
