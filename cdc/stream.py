"""The record stream: created if it is missing, rejected if it is configured differently.

Guarantee: after `ensure_stream` the stream takes the subjects of the record log and nothing else,
never changes a message, removes one only by age (`stream_max_age_h`), and forbids deleting and
purging. Its next sequence is the one after the last one that `ensure_stream` returns. If retention
has already removed the first records of the log, a new stream begins at the horizon (`first_seq`).

On failure: `StreamRefused` names the setting, its value and the required value. Settings that are
the operator's choice (age, replicas, storage) may differ.
"""

from __future__ import annotations

from datetime import timedelta

from nats.js.api import StreamConfig, StreamInfo
from nats.js.client import JetStreamContext

from cdc.errors import StreamRefused
from tocsin.core.settings import Settings
from tocsin.core.streams import ensure, find, stream_config
from tocsin.nats_access.roles import RECORD_KINDS


def record_stream_config(settings: Settings, first_seq: int = 1) -> StreamConfig:
    prefix = settings.subjects
    return stream_config(
        settings.stream,
        [f"{prefix}.{kind}.>" for kind in RECORD_KINDS],
        settings.stream_replicas,
        description="tocsin record log, sequence equal to seq",
        max_age=timedelta(hours=settings.stream_max_age_h).total_seconds(),
        deny_delete=True,
        deny_purge=True,
        # Messages have no `Nats-Msg-Id`: the stream rejects a duplicate by its expected sequence.
        duplicate_window=1.0,
        first_seq=first_seq if first_seq > 1 else None,
    )


async def ensure_stream(js: JetStreamContext, settings: Settings, horizon: int) -> tuple[int, int]:
    """Create or check the stream and return its first and its last sequence.

    `horizon` is the first seq that the log still has.
    """
    info = await ensure(js, record_stream_config(settings, first_seq=horizon), StreamRefused)
    return int(info.state.first_seq), int(info.state.last_seq)


async def find_stream(
    js: JetStreamContext, settings: Settings, subjects: str | None = None
) -> StreamInfo | None:
    """The stream, or None. With `subjects`, its state counts the messages of each matching subject."""
    return await find(js, settings.stream, subjects)
