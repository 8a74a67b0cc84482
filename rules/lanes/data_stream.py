"""The data stream: producers publish datapoints to it, and the server partitions it by owner.

Guarantee: all messages of one owner, and the calculated datapoints about its series, are in one
partition, in one order. The server transforms the subjects, so producers do not know the
partitions.

The staleness and health subjects of the record stream are sourced into the same partitions: the
data lane has one order and one writer per partition. They are stored under `calculated.<partition>`,
datapoints of producers under `data.<partition>`. The subject alone separates them: a producer can
publish only on `datapoint.>`, which the server stores under `data`. A header proves nothing, because
a producer can write it. After a rebuild of the record stream, sourced messages come again; their
sequence in the record stream identifies them (`LaneMessage.source_seq`).

On failure: a stream with another number of partitions, or another configuration, is rejected, and
the error names it.
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

from tocsin.core.errors import Refused
from tocsin.core.settings import Settings
from tocsin.core.streams import ensure, find, stream_config

_CANARY_KEY = "~canary"
_FNV_OFFSET, _FNV_PRIME = 2166136261, 16777619


def data_stream_config(settings: Settings, first_seq: int = 1) -> StreamConfig:
    prefix = settings.subjects
    # `*` is the owner. A subject without a key behind it has no stream, and its publisher gets an
    # error.
    place = f"{{{{partition({settings.data_partitions},1)}}}}.{{{{wildcard(1)}}}}.>"
    return stream_config(
        settings.data_stream,
        [f"{prefix}.datapoint.*.>"],
        settings.stream_replicas,
        description="tocsin datapoints, partitioned by owner",
        subject_transform=SubjectTransform(src=f"{prefix}.datapoint.*.>", dest=f"{prefix}.data.{place}"),
        sources=[
            StreamSource(
                name=settings.stream,
                subject_transforms=[
                    SubjectTransform(src=f"{prefix}.{kind}.*.>", dest=f"{prefix}.calculated.{place}")
                    for kind in ("staleness", "health", "calc")
                ],
            )
        ],
        allow_msg_ttl=True,  # canaries expire
        max_age=timedelta(hours=settings.data_max_age_h).total_seconds(),
        first_seq=first_seq if first_seq > 1 else None,
    )


async def ensure_data_stream(js: JetStreamContext, settings: Settings, first_seq: int) -> None:
    """Create the stream if it is missing, or correct the sources of an older one.

    The sequences of a new stream start at `first_seq`.
    """
    wanted = data_stream_config(settings, first_seq)
    found = await find(js, settings.data_stream)
    if found is not None and _has_older_sources(found.config.sources or [], wanted.sources or []):
        await js.update_stream(replace(found.config, sources=wanted.sources))
    await ensure(js, wanted)


def refuse_other_partitions(settings: Settings, partitions: int) -> None:
    """Another number would give an owner another partition, beside the one that has its state."""
    if partitions != settings.data_partitions:
        raise Refused(
            f"TOCSIN_DATA_PARTITIONS={settings.data_partitions}, but the data lane was created with {partitions}",
            remedy=f"set it to {partitions}",
        )


def _has_older_sources(found: Sequence[StreamSource], wanted: Sequence[StreamSource]) -> bool:
    """Whether the same stream is sourced, with a part of today's subjects or to another place."""
    if [source.name for source in found] != [source.name for source in wanted]:
        return False
    before, now = (
        [transform for source in sources for transform in source.subject_transforms or []]
        for sources in (found, wanted)
    )
    return before != now and {transform.src for transform in before} <= {transform.src for transform in now}


def producer_subject(settings: Settings, subject: str) -> str:
    """The subject of the producer, from the one under which the server stored the message.

    That of a calculated datapoint is unchanged.
    """
    if is_calculated_subject(settings, subject):
        return subject
    owner_and_key = subject.removeprefix(f"{settings.subjects}.data.").partition(".")[2]
    return f"{settings.subjects}.datapoint.{owner_and_key}"


def partition_subject(settings: Settings, partition: int) -> str:
    """The datapoints of producers, and canaries."""
    return f"{settings.subjects}.data.{partition}.>"


def calculated_partition_subject(settings: Settings, partition: int) -> str:
    """What the server sourced from the record stream."""
    return f"{settings.subjects}.calculated.{partition}.>"


def is_calculated_subject(settings: Settings, subject: str) -> bool:
    """Whether the server stored this message from the record stream. No producer can publish there."""
    return subject.startswith(f"{settings.subjects}.calculated.")


def canary_subject(settings: Settings, partition: int) -> str:
    """The subject of canaries to a partition. Its owner is one that the server assigns to it.

    A token with `~` is never the encoding of an owner or a key, so no series has this subject.
    """
    number = 0
    while partition_of(f"~{number}", settings.data_partitions) != partition:
        number += 1
    return f"{settings.subjects}.datapoint.~{number}.{_CANARY_KEY}"


def is_canary_subject(subject: str) -> bool:
    """Whether a subject, as the server stored it, is that of a canary."""
    if not subject.endswith(_CANARY_KEY):
        return False
    _, _, kind, _, owner, key = subject.split(".", 5)
    return kind == "data" and owner.startswith("~") and key == _CANARY_KEY


def partition_of(owner_token: str, partitions: int) -> int:
    """The result of `partition(n, 1)` in a subject transform of NATS: FNV-1a with 32 bits."""
    digest = _FNV_OFFSET
    for byte in owner_token.encode():
        digest = (digest ^ byte) * _FNV_PRIME % 2**32
    return digest % partitions
