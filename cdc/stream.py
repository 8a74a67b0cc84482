"""The stream: made if it is missing, refused by name if somebody configured it otherwise.

Guarantee: after `ensure_stream` the stream takes the record log's subjects and nothing else, keeps every
message as it was sent, forbids deleting and purging, and its next sequence is the one after the returned
one. A stream made for an old table begins behind what the table no longer has (`first_seq`).

On failure: `StreamRefused` names the setting, what it is and what it must be. What only an operator can
judge (age, replicas, storage) may differ.
"""

from __future__ import annotations

from datetime import timedelta

import structlog
from nats.js.api import DiscardPolicy, RetentionPolicy, StorageType, StreamConfig, StreamInfo
from nats.js.client import JetStreamContext
from nats.js.errors import APIError, NotFoundError, ServiceUnavailableError

from cdc.stops import StreamRefused
from tocsin.core.settings import Settings

_log = structlog.get_logger()
_NAME_IN_USE = 10058
# What must be as we made it, or the chain's guarantees do not hold.
_ESSENTIAL = (
    "subjects",
    "retention",
    "discard",
    "discard_new_per_subject",
    "max_msgs",
    "max_bytes",
    "max_msgs_per_subject",
    "max_msg_size",
    "no_ack",
    "sealed",
    "mirror",
    "sources",
    "subject_transform",
    "deny_delete",
    "deny_purge",
    "allow_rollup_hdrs",
    "allow_msg_ttl",
    "allow_msg_counter",
)


def stream_config(settings: Settings, first_seq: int = 1) -> StreamConfig:
    prefix = settings.subjects
    return StreamConfig(
        name=settings.stream,
        description="tocsin record log, sequence equal to seq",
        subjects=[f"{prefix}.{kind}.>" for kind in ("event", "action", "staleness", "health", "tombstone")],
        retention=RetentionPolicy.LIMITS,
        discard=DiscardPolicy.OLD,
        max_msgs=-1,
        max_bytes=-1,
        max_msgs_per_subject=-1,
        max_age=timedelta(hours=settings.stream_max_age_h).total_seconds(),
        storage=StorageType.FILE,
        num_replicas=settings.stream_replicas,
        deny_delete=True,
        deny_purge=True,
        allow_direct=False,
        duplicate_window=1.0,
        first_seq=first_seq if first_seq > 1 else None,
    )


async def ensure_stream(js: JetStreamContext, settings: Settings, horizon: int) -> int:
    """The stream's last sequence. `horizon` is the first seq the table still has."""
    info = await find_stream(js, settings) or await _make(js, settings, horizon)
    _refuse_other_config(info, settings)
    return last_sequence(info)


async def find_stream(js: JetStreamContext, settings: Settings) -> StreamInfo | None:
    try:
        return await js.stream_info(settings.stream)
    except NotFoundError:
        return None


def last_sequence(info: StreamInfo) -> int:
    return int(info.state.last_seq)


async def _make(js: JetStreamContext, settings: Settings, horizon: int) -> StreamInfo:
    try:
        info = await js.add_stream(stream_config(settings, first_seq=horizon))
    except ServiceUnavailableError:  # no leader yet: it is waited for
        raise
    except APIError as error:
        if error.err_code == _NAME_IN_USE:  # another publisher made it between our look and our request
            return await js.stream_info(settings.stream)
        raise StreamRefused(
            f"nats refuses to make the stream {settings.stream!r} ({error.description}): remove what stands "
            "in the way, or set TOCSIN_NAMESPACE to a name of its own"
        ) from None
    _log.info("stream made", stream=settings.stream, first_seq=horizon)
    return info


def _refuse_other_config(info: StreamInfo, settings: Settings) -> None:
    wanted = stream_config(settings)
    for name in _ESSENTIAL:
        found, expected = getattr(info.config, name), getattr(wanted, name)
        if name == "subjects":
            found, expected = sorted(found or []), sorted(expected or [])
        if found != expected and not (not found and not expected):
            raise StreamRefused(
                f"the stream {settings.stream!r} has {name}={_plain(found)}, tocsin needs "
                f"{_plain(expected)}: correct it with `nats stream edit`, or set TOCSIN_NAMESPACE to a name "
                "of its own"
            )


def _plain(value: object) -> str:
    return repr(getattr(value, "value", value))
