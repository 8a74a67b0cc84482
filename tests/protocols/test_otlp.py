import json
from contextlib import suppress
from datetime import UTC, datetime
from math import nan
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from tocsin.core.errors import InvalidInput
from tocsin.protocols.otlp import export_answer, read_export
from tocsin.protocols.sample import MAX_SAMPLES, Sample

NANO = 1_700_000_000_000_000_000
AT = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
SERVICE = {"key": "service.name", "value": {"stringValue": "shop"}}


def export(*metrics: dict[str, Any], resource: list[Any] | None = None) -> bytes:
    attributes = [SERVICE] if resource is None else resource
    entry = {"resource": {"attributes": attributes}, "scopeMetrics": [{"metrics": list(metrics)}]}
    return json.dumps({"resourceMetrics": [entry]}).encode()


def test_a_gauge_in_json_has_the_attributes_of_resource_and_point() -> None:
    attributes = [
        {"key": "zone", "value": {"stringValue": "north"}},
        {"key": "port", "value": {"intValue": "80"}},
        {"key": "ok", "value": {"boolValue": True}},
        {"key": "tags", "value": {"arrayValue": {"values": [{"stringValue": "a"}, {"stringValue": "b"}]}}},
    ]
    point = {"attributes": attributes, "timeUnixNano": str(NANO), "asDouble": 21.5}
    read = read_export(export({"name": "room.temperature", "gauge": {"dataPoints": [point]}}), is_json=True)
    labels = {"service.name": "shop", "zone": "north", "port": "80", "ok": "true", "tags": "a,b"}
    assert read.samples == [Sample("room.temperature", labels, 21.5, AT)]


def test_protobuf_and_json_give_the_same_samples() -> None:
    body = export({"name": "a", "sum": {"dataPoints": [{"timeUnixNano": str(NANO), "asInt": "7"}]}})
    request = ExportMetricsServiceRequest()
    read = read_export(body, is_json=True)
    metric = request.resource_metrics.add()
    metric.resource.attributes.add(key="service.name").value.string_value = "shop"
    point = (
        metric.scope_metrics.add().metrics.add(name="a").sum.data_points.add(time_unix_nano=NANO, as_int=7)
    )
    assert point.as_int == 7
    assert read_export(request.SerializeToString(), is_json=False).samples == read.samples


def test_a_histogram_has_cumulative_buckets_with_their_upper_bounds() -> None:
    point = {"count": "6", "sum": 9.5, "min": 1, "bucketCounts": ["1", "2", "3"], "explicitBounds": [5, 10]}
    read = read_export(export({"name": "h", "histogram": {"dataPoints": [point]}}, resource=[]), is_json=True)
    assert [(sample.metric, sample.labels, sample.value) for sample in read.samples] == [
        ("h.count", {}, 6),
        ("h.sum", {}, 9.5),
        ("h.min", {}, 1),
        ("h.bucket", {"le": "5"}, 1),
        ("h.bucket", {"le": "10"}, 3),
        ("h.bucket", {"le": "+Inf"}, 6),
    ]


def test_a_summary_has_its_quantiles() -> None:
    point = {"count": "2", "sum": 3, "quantileValues": [{"quantile": 0.5, "value": 1.5}]}
    read = read_export(export({"name": "s", "summary": {"dataPoints": [point]}}, resource=[]), is_json=True)
    assert [(sample.metric, sample.labels, sample.value) for sample in read.samples] == [
        ("s.count", {}, 2),
        ("s.sum", {}, 3.0),
        ("s", {"quantile": "0.5"}, 1.5),
    ]


def test_a_point_without_a_recorded_value_is_skipped() -> None:
    points = [{"flags": 1}, {"asDouble": "NaN"}, {"asDouble": 1}]
    read = read_export(export({"name": "g", "gauge": {"dataPoints": points}}), is_json=True)
    assert (len(read.samples), read.skipped, read.problems) == (1, 2, [])


@pytest.mark.parametrize(
    ("metric", "reason"),
    [
        ({"name": "g"}, "has no data of a known kind"),
        ({"name": "g", "gauge": {"dataPoints": [{}]}}, "a data point has no value"),
        (
            {"name": "g", "histogram": {"dataPoints": [{"bucketCounts": ["1"], "explicitBounds": [1, 2]}]}},
            "it has 1 buckets and 2 bounds",
        ),
        (
            {"name": "g", "gauge": {"dataPoints": [{"asInt": "1", "timeUnixNano": str(2**63)}]}},
            None,
        ),
    ],
)
def test_a_wrong_metric_is_a_problem_and_the_others_are_read(
    metric: dict[str, Any], reason: str | None
) -> None:
    good = {"name": "ok", "gauge": {"dataPoints": [{"asInt": "1"}]}}
    read = read_export(export(metric, good), is_json=True)
    assert "ok" in [sample.metric for sample in read.samples]
    assert reason is None or any(reason in problem for problem in read.problems)


def test_too_many_values_are_refused() -> None:
    points = [{"asInt": "1"}] * (MAX_SAMPLES + 1)
    with pytest.raises(InvalidInput, match="more than"):
        read_export(export({"name": "g", "gauge": {"dataPoints": points}}), is_json=True)


def test_deep_json_is_refused() -> None:
    value: dict[str, Any] = {"stringValue": "x"}
    for _ in range(200):
        value = {"arrayValue": {"values": [value]}}
    with pytest.raises(InvalidInput, match="JSON"):
        read_export(export(resource=[{"key": "a", "value": value}]), is_json=True)


def test_the_answer_counts_what_was_rejected() -> None:
    assert MessageToDict(export_answer(0, "")) == {}
    assert MessageToDict(export_answer(2, "no owner")) == {
        "partialSuccess": {"rejectedDataPoints": "2", "errorMessage": "no owner"}
    }


@given(st.binary(max_size=300))
def test_no_bytes_make_the_reader_fail(body: bytes) -> None:
    for is_json in (False, True):
        with suppress(InvalidInput):
            read_export(body, is_json=is_json)


@given(st.floats(), st.integers(0, 2**64 - 1), st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_every_point_is_read_skipped_or_a_problem(number: float, nano: int, name: str) -> None:
    request = ExportMetricsServiceRequest()
    metric = request.resource_metrics.add().scope_metrics.add().metrics.add(name=name)
    metric.gauge.data_points.add(time_unix_nano=nano, as_double=number)
    read = read_export(request.SerializeToString(), is_json=False)
    assert len(read.samples) + read.skipped + len(read.problems) == 1
    assert number != nan or read.skipped == 1
