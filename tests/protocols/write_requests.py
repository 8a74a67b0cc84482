"""Bodies of remote_write, made with the same descriptors as the reader's. The tests with a real
Prometheus prove that these are right."""

from collections.abc import Sequence

import cramjam

from tocsin.protocols.remote_write import WriteRequest

SeriesSamples = tuple[dict[str, str], Sequence[tuple[float, int]]]


def compressed(body: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(body))


def write_request(series: Sequence[SeriesSamples]) -> bytes:
    request = WriteRequest()
    for labels, samples in series:
        added = request.timeseries.add()
        for name, value in labels.items():
            added.labels.add(name=name, value=value)
        for number, timestamp in samples:
            added.samples.add(value=number, timestamp=timestamp)
    return compressed(request.SerializeToString())
