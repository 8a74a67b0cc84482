"""OTLP metrics: `ExportMetricsServiceRequest` as protobuf or JSON, with or without gzip.

Guarantee: a compressed body is read at most up to its bound. Each data point becomes samples with the
attributes of its resource and its own as labels:

| kind | samples |
|---|---|
| gauge, sum | `<name>` |
| histogram | `<name>.count`, `.sum`, `.min`, `.max`, and `<name>.bucket` with the label `le`, cumulative |
| exponential histogram | `<name>.count`, `.sum`, `.min`, `.max` |
| summary | `<name>.count`, `.sum`, and `<name>` with the label `quantile` |

A data point without a recorded value, or with one that is not finite, is skipped. Delta temporality is
not converted: its values are differences.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isfinite
from typing import Any

from google.protobuf.json_format import Parse, ParseError
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsPartialSuccess,
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)

from schemas.wire.datapoint import Value
from tocsin.core.errors import InvalidInput
from tocsin.protocols.sample import MAX_SAMPLES, ReadSamples, Sample, instant_of

MAX_OTLP_BYTES = 2 * 1024 * 1024
_MAX_JSON_DEPTH = 20
_NO_RECORDED_VALUE = 1
_MAX_ATTRIBUTES = 128
_KINDS = ("gauge", "sum", "histogram", "exponential_histogram", "summary")


def read_export(body: bytes, *, is_json: bool) -> ReadSamples:
    """The samples of an export. `InvalidInput` if the body is not one."""
    request = _parse_json(body) if is_json else _parse(body)
    read = ReadSamples()
    for resource in request.resource_metrics:
        try:
            labels = _labels({}, resource.resource.attributes)
        except ValueError as error:
            read.problems.append(f"a resource: {error}")
            continue
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                _read_metric(metric, labels, read)
    return read


def export_answer(rejected: int, reason: str) -> ExportMetricsServiceResponse:
    """The answer, with the number of rejected data points."""
    if not rejected:
        return ExportMetricsServiceResponse()
    partial = ExportMetricsPartialSuccess(rejected_data_points=rejected, error_message=reason)
    return ExportMetricsServiceResponse(partial_success=partial)


def _parse(body: bytes) -> Any:
    request = ExportMetricsServiceRequest()
    try:
        request.ParseFromString(body)
    except DecodeError:
        raise InvalidInput(
            "the body is not an ExportMetricsServiceRequest", remedy="send OTLP metrics as protobuf"
        ) from None
    return request


def _parse_json(body: bytes) -> Any:
    try:
        return Parse(
            body.decode(),
            ExportMetricsServiceRequest(),
            ignore_unknown_fields=True,
            max_recursion_depth=_MAX_JSON_DEPTH,
        )
    except (ParseError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(
            f"the body is not an ExportMetricsServiceRequest in JSON ({str(error)[:200]})",
            remedy="send OTLP metrics as JSON",
        ) from None


def _read_metric(metric: Any, resource: dict[str, str], read: ReadSamples) -> None:
    kind = metric.WhichOneof("data")
    if kind not in _KINDS:
        read.problems.append(f"the metric {metric.name[:80]!r} has no data of a known kind")
        return
    for point in getattr(metric, kind).data_points:
        if point.flags & _NO_RECORDED_VALUE:
            read.skipped += 1
            continue
        try:
            labels = _labels(resource, point.attributes)
            ts = instant_of(point.time_unix_nano // 1_000) if point.time_unix_nano else None
            for name, more, value in _values(kind, metric.name, point):
                if isinstance(value, float) and not isfinite(value):
                    read.skipped += 1
                else:
                    read.samples.append(Sample(name, labels | more, value, ts))
        except ValueError as error:
            read.problems.append(f"the metric {metric.name[:80]!r}: {error}")
        if len(read.samples) + len(read.problems) + read.skipped > MAX_SAMPLES:
            raise InvalidInput(
                f"the export has more than {MAX_SAMPLES} values", remedy="export fewer metrics at once"
            )


def _values(kind: str, name: str, point: Any) -> Iterator[tuple[str, dict[str, str], Value]]:
    if kind in ("gauge", "sum"):
        field = point.WhichOneof("value")
        if field is None:
            raise ValueError("a data point has no value")
        yield name, {}, getattr(point, field)
        return
    yield f"{name}.count", {}, point.count
    if kind == "summary":
        yield f"{name}.sum", {}, point.sum
        for quantile in point.quantile_values:
            yield name, {"quantile": f"{quantile.quantile:g}"}, quantile.value
        return
    for field in ("sum", "min", "max"):
        if point.HasField(field):
            yield f"{name}.{field}", {}, getattr(point, field)
    if kind == "histogram":
        yield from _buckets(name, point)


def _buckets(name: str, point: Any) -> Iterator[tuple[str, dict[str, str], Value]]:
    bounds = [f"{bound:g}" for bound in point.explicit_bounds] + ["+Inf"]
    if not point.bucket_counts:
        return
    if len(point.bucket_counts) != len(bounds):
        raise ValueError(f"it has {len(point.bucket_counts)} buckets and {len(bounds) - 1} bounds")
    total = 0
    for bound, count in zip(bounds, point.bucket_counts, strict=True):
        total += count
        yield f"{name}.bucket", {"le": bound}, total


def _labels(known: dict[str, str], attributes: Iterable[Any]) -> dict[str, str]:
    labels = dict(known)
    for attribute in attributes:
        labels[attribute.key] = _text(attribute.value)
    if len(labels) > _MAX_ATTRIBUTES:
        raise ValueError(f"it has {len(labels)} attributes: send at most {_MAX_ATTRIBUTES}")
    return labels


def _text(value: Any) -> str:
    kind = value.WhichOneof("value")
    if kind == "bool_value":
        return "true" if value.bool_value else "false"
    if kind in ("string_value", "int_value", "double_value"):
        return str(getattr(value, kind))
    if kind == "array_value":
        return ",".join(_text(item) for item in value.array_value.values[:_MAX_ATTRIBUTES])
    return ""
