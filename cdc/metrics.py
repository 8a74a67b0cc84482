"""Metrics of a publisher.

Guarantee: a record is counted when the stream has acknowledged its chunk.
"""

from __future__ import annotations

from tocsin.core.metrics import Metrics

CDC = Metrics()
PUBLISHED = CDC.counter("tocsin_published_records_total", "records that the stream has acknowledged")
CHUNKS = CDC.counter("tocsin_published_chunks_total", "chunks that the stream has acknowledged")
BROKEN = CDC.counter(
    "tocsin_chain_broken_total",
    "chunks that the stream rejected or did not acknowledge; the publisher resumes after each",
)
POSITION = CDC.gauge(
    "tocsin_publisher_position_seq", "last seq that the stream has acknowledged to this publisher"
)
