"""What a publisher counts of itself.

Guarantee: a record is counted when the stream has acknowledged it, a chunk at a time.
"""

from __future__ import annotations

from tocsin.core.metrics import Metrics

CDC = Metrics()
PUBLISHED = CDC.counter("tocsin_published_records_total", "records that the stream has acknowledged")
CHUNKS = CDC.counter("tocsin_published_chunks_total", "chunks that the stream has acknowledged")
BROKEN = CDC.counter(
    "tocsin_chain_broken_total",
    "times that a chunk was refused or not answered, and the chain taken up again",
)
POSITION = CDC.gauge(
    "tocsin_publisher_position_seq", "last seq that this publisher knows to be in the stream"
)
