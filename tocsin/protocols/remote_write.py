"""Prometheus remote_write 1.0: a snappy block with a protobuf `prometheus.WriteRequest`.

Guarantee: the announced size is checked before a byte is decompressed. Stale markers and values that
are not finite are skipped, because a datapoint is a finite number. Everything else of a series becomes
samples with its labels; exemplars, histograms and metadata are not declared, and protobuf ignores
fields that it does not know.

Why the messages are declared here: the five that are needed take a few lines, and the official files
would bring a compiler into the build, or generated code into the repository. `protobuf` builds the
classes from the descriptors when the module is first imported.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

import cramjam
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from tocsin.core.errors import InvalidInput
from tocsin.protocols.sample import MAX_SAMPLES, ReadSamples, Sample, instant_of

MAX_COMPRESSED_BYTES = 1024 * 1024
MAX_DECODED_BYTES = 2 * 1024 * 1024
"""An empty message takes two bytes here and 64 in memory."""
_NAME_LABEL = "__name__"
_MAX_SERIES_LABELS = 128
_FIELD = descriptor_pb2.FieldDescriptorProto
# name, number, type, is repeated, type of the message
_MESSAGES: dict[str, list[tuple[str, int, int, bool, str]]] = {
    "Label": [("name", 1, _FIELD.TYPE_STRING, False, ""), ("value", 2, _FIELD.TYPE_STRING, False, "")],
    "Sample": [("value", 1, _FIELD.TYPE_DOUBLE, False, ""), ("timestamp", 2, _FIELD.TYPE_INT64, False, "")],
    "TimeSeries": [
        ("labels", 1, _FIELD.TYPE_MESSAGE, True, "Label"),
        ("samples", 2, _FIELD.TYPE_MESSAGE, True, "Sample"),
    ],
    "WriteRequest": [("timeseries", 1, _FIELD.TYPE_MESSAGE, True, "TimeSeries")],
}


def _declare() -> Any:
    file = descriptor_pb2.FileDescriptorProto(
        name="tocsin/remote_write.proto", package="tocsin.remote_write", syntax="proto3"
    )
    for message_name, fields in _MESSAGES.items():
        message = file.message_type.add(name=message_name)
        for name, number, kind, is_repeated, of in fields:
            label = _FIELD.LABEL_REPEATED if is_repeated else _FIELD.LABEL_OPTIONAL
            field = message.field.add(name=name, number=number, type=kind, label=label)
            if of:
                field.type_name = f".tocsin.remote_write.{of}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tocsin.remote_write.WriteRequest"))


WriteRequest: Any = _declare()


def read_write_request(body: bytes) -> ReadSamples:
    """The samples of a request. `InvalidInput` if it is too large or not a WriteRequest."""
    request = WriteRequest()
    try:
        request.ParseFromString(_decompress(body))
    except DecodeError:
        raise InvalidInput(
            "the body is not a prometheus.WriteRequest", remedy="send remote_write 1.0, snappy and protobuf"
        ) from None
    read = ReadSamples()
    for series in request.timeseries:
        _read_series(series, read)
        if len(read.samples) + len(read.problems) + read.skipped > MAX_SAMPLES:
            raise InvalidInput(
                f"the request has more than {MAX_SAMPLES} values", remedy="lower max_samples_per_send"
            )
    return read


def _decompress(body: bytes) -> bytes:
    if len(body) > MAX_COMPRESSED_BYTES:
        raise InvalidInput(
            f"the body has {len(body)} bytes, and at most {MAX_COMPRESSED_BYTES} are read",
            remedy="lower max_samples_per_send",
        )
    try:
        size = cramjam.snappy.decompress_raw_len(body)
        if size > MAX_DECODED_BYTES:
            raise InvalidInput(
                f"the body has {size} bytes when decompressed, and at most {MAX_DECODED_BYTES} are read",
                remedy="lower max_samples_per_send",
            )
        return bytes(cramjam.snappy.decompress_raw(body))
    except cramjam.DecompressionError:
        raise InvalidInput("the body is not a snappy block", remedy="compress it with snappy") from None


def _read_series(series: Any, read: ReadSamples) -> None:
    if len(series.labels) > _MAX_SERIES_LABELS:
        read.problems.append(f"a series has {len(series.labels)} labels: send at most {_MAX_SERIES_LABELS}")
        return
    labels = {label.name: label.value for label in series.labels}
    metric = labels.pop(_NAME_LABEL, "")
    if not metric:
        read.problems.append("a series has no label '__name__': send the name of its metric")
        return
    for sample in series.samples:
        if not isfinite(sample.value):
            read.skipped += 1
            continue
        try:
            ts = instant_of(sample.timestamp * 1_000)
        except ValueError as error:
            read.problems.append(f"the metric {metric[:80]!r}: {error}")
            continue
        read.samples.append(Sample(metric, labels, sample.value, ts))
