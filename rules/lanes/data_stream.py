"""The data stream: what producers publish to, partitioned by owner on the server.

Guarantee: all messages of one owner, and the verdicts about its series, are in one partition, in one order. The server
does it with a transform of the subject, so producers know nothing of partitions and cannot get them wrong.

The record stream's subjects of staleness and health are sourced into the same partitions: consumers of the data lane
see one lane, and there is no second writer. After a rebuild of the record stream sourced messages come again; their
sequence in the record stream tells (`Message.source_seq`).

On failure: a stream with another number of partitions, or another configuration, is refused by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from nats.js.api import (
    StreamConfig,
    StreamSource,
    SubjectTransform,
)
from nats.js.client import JetStreamContext

from tocsin.core.settings import Settings
from tocsin.core.streams import ensure, find, stream_config


def data_stream_config(settings: Settings, first_seq: int = 1) -> StreamConfig:
    prefix = settings.subjects
    # `*` is the owner; without a key behind it the subject is nobody's, and its publisher is told so.
    partitioned = f"{prefix}.data.{{{{partition({settings.data_partitions},1)}}}}.{{{{wildcard(1)}}}}.>"
    return stream_config(
        settings.data_stream,
        [f"{prefix}.datapoint.*.>"],
        settings.stream_replicas,
        description="tocsin datapoints, partitioned by owner",
        subject_transform=SubjectTransform(src=f"{prefix}.datapoint.*.>", dest=partitioned),
        sources=[
            StreamSource(
                name=settings.stream,
                subject_transforms=[
                    SubjectTransform(src=f"{prefix}.{verdict}.*.>", dest=partitioned)
                    for verdict in ("staleness", "health")
                ],
            )
        ],
        max_age=timedelta(hours=settings.data_max_age_h).total_seconds(),
        first_seq=first_seq if first_seq > 1 else None,
    )


async def ensure_data_stream(js: JetStreamContext, settings: Settings, first_seq: int) -> None:
    """A stream that was lost is made anew with sequences that go on behind what was read; one that an older version
    made learns of the verdicts that came since."""
    wanted = data_stream_config(settings, first_seq)
    found = await find(js, settings.data_stream)
    if found is not None and _is_older(found.config.sources or [], wanted.sources or []):
        await js.update_stream(replace(found.config, sources=wanted.sources))
    await ensure(js, wanted)


def _is_older(found: Sequence[StreamSource], wanted: Sequence[StreamSource]) -> bool:
    """Whether the same stream is sourced, with a part of what is sourced today."""
    if [one.name for one in found] != [one.name for one in wanted]:
        return False
    before, now = (
        [one for source in sources for one in source.subject_transforms or []] for sources in (found, wanted)
    )
    return len(before) < len(now) and all(one in now for one in before)


def sent_to(settings: Settings, subject: str) -> str:
    """Where the producer published what the server stored under the subject of a partition."""
    owner_and_key = subject.removeprefix(f"{settings.subjects}.data.").partition(".")[2]
    return f"{settings.subjects}.datapoint.{owner_and_key}"


def partition_subject(settings: Settings, partition: int) -> str:
    return f"{settings.subjects}.data.{partition}.>"
