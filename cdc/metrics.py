"""Metrics of a publisher.

Guarantee: a record is counted when the stream has acknowledged its chunk.
"""

from __future__ import annotations

from tocsin.core.metrics import Metrics

PUBLISHER_METRICS = Metrics()
PUBLISHED = PUBLISHER_METRICS.counter(
    "tocsin_published_records_total", "records that the stream has acknowledged"
)
CHUNKS = PUBLISHER_METRICS.counter("tocsin_published_chunks_total", "chunks that the stream has acknowledged")
CHAIN_BROKEN = PUBLISHER_METRICS.counter(
    "tocsin_chain_broken_total",
    "chunks that the stream rejected or did not acknowledge; the publisher resumes after each",
)
POSITION = PUBLISHER_METRICS.gauge(
    "tocsin_publisher_position_seq", "last seq that this publisher knows to be in the stream"
)
