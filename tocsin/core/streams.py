"""Streams of Tocsin: created if they are missing, rejected if they are configured differently.

Guarantee: after `ensure` the stream has the wanted configuration in every setting that decides what
it accepts, keeps and forbids. Settings that are the operator's choice (age, replicas, storage) may
differ.

On failure: `Refused`, or the subclass that the caller gives, names the setting, its value and the
required value.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import structlog
from nats.js.api import DiscardPolicy, RetentionPolicy, StorageType, StreamConfig, StreamInfo
from nats.js.client import JetStreamContext
from nats.js.errors import APIError, NotFoundError, ServiceUnavailableError

from tocsin.core.errors import Refused, Unreachable
from tocsin.core.nats_client import NatsForbidden

_log = structlog.get_logger()
_NAME_IN_USE = 10058
_PATIENCE_S = 10.0
_POLL_S = 0.1
# Settings that the guarantees depend on.
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
    "republish",
    "deny_delete",
    "deny_purge",
    "allow_rollup_hdrs",
    "allow_msg_ttl",
    "allow_msg_counter",
)
_OPERATORS_CHOICE = ("max_age", "num_replicas", "storage", "duplicate_window", "placement", "compression")


def stream_config(name: str, subjects: Sequence[str], replicas: int, **options: Any) -> StreamConfig:
    """Configuration of a stream: on disk, without limits.

    `options` are further fields of `StreamConfig`, such as `max_age`.
    """
    defaults: dict[str, Any] = {
        "retention": RetentionPolicy.LIMITS,
        "discard": DiscardPolicy.OLD,
        "max_msgs": -1,
        "max_bytes": -1,
        "max_msgs_per_subject": -1,
        "storage": StorageType.FILE,
        "allow_direct": False,
        "duplicate_window": 120.0,
    }
    return StreamConfig(name=name, subjects=list(subjects), num_replicas=replicas, **(defaults | options))


async def ensure(js: JetStreamContext, wanted: StreamConfig, refusal: type[Refused] = Refused) -> StreamInfo:
    info = await find(js, str(wanted.name)) or await _create(js, wanted, refusal)
    _check_config(info, wanted, refusal)
    return info


async def bring_up_to_date(js: JetStreamContext, wanted: StreamConfig) -> str:
    """Create the stream, or change what differs. Returns `created`, `changed` or `unchanged`.

    The age and the number of replicas of an existing stream are the choice of the operator, and stay.
    """
    info = await find(js, str(wanted.name))
    if info is None:
        await _create(js, wanted, Refused)
        return "created"
    kept = {name: getattr(info.config, name) for name in (*_OPERATORS_CHOICE, "first_seq")}
    if wanted.max_age and not info.config.max_age:
        kept.pop("max_age")
    changed = replace(wanted, **kept)
    if not _differences(info, changed) and info.config.max_age == changed.max_age:
        return "unchanged"
    try:
        await js.update_stream(changed)
    except APIError as error:
        raise Refused(
            f"nats rejects the change of the stream {wanted.name!r} ({error.description})",
            remedy="correct it with `nats stream edit`, or set TOCSIN_NAMESPACE to another name",
        ) from None
    return "changed"


async def find(js: JetStreamContext, name: str, subjects: str | None = None) -> StreamInfo | None:
    """The stream, or None.

    With `subjects`, its state also counts the messages of each matching subject.
    """
    try:
        return await js.stream_info(name, subjects_filter=subjects)
    except NotFoundError:
        return None


async def wait_until_stream_exists(js: JetStreamContext, name: str) -> None:
    """Wait for a stream that another service creates.

    On a new instance the publisher creates the record stream shortly after the workers start. After
    `_PATIENCE_S` seconds without the stream: `Unreachable`.
    """
    patient_until = time.monotonic() + _PATIENCE_S
    while await find(js, name) is None:
        if time.monotonic() > patient_until:
            raise Unreachable(
                f"the stream {name!r} does not exist yet",
                remedy="`tocsin run cdc` or `tocsin streams create` makes it",
            )
        await asyncio.sleep(_POLL_S)


async def _create(js: JetStreamContext, wanted: StreamConfig, refusal: type[Refused]) -> StreamInfo:
    name = str(wanted.name)
    try:
        info = await js.add_stream(wanted)
    except ServiceUnavailableError:  # no leader yet: the caller waits
        raise
    except NatsForbidden:
        raise Unreachable(
            f"the stream {name!r} does not exist, and this NATS user may not create it",
            remedy="let an administrator run `tocsin streams create`",
        ) from None
    except APIError as error:
        if error.err_code == _NAME_IN_USE:  # another process created it between our two requests
            return await js.stream_info(name)
        raise refusal(
            f"nats rejects the stream {name!r} ({error.description})",
            remedy="fix what nats reports, or set TOCSIN_NAMESPACE to another name",
        ) from None
    _log.info("stream created", stream=name, first_seq=wanted.first_seq or 1)
    return info


def _check_config(info: StreamInfo, wanted: StreamConfig, refusal: type[Refused]) -> None:
    for name, actual, expected in _differences(info, wanted):
        raise refusal(
            f"the stream {wanted.name!r} has {name}={_shown(actual)}, tocsin needs {_shown(expected)}",
            remedy="correct it with `nats stream edit` or `tocsin streams create`, or set TOCSIN_NAMESPACE to "
            "another name",
        )


def _differences(info: StreamInfo, wanted: StreamConfig) -> list[tuple[str, object, object]]:
    """Each essential setting that differs, with its value and the required value."""
    found: list[tuple[str, object, object]] = []
    for name in _ESSENTIAL:
        actual, expected = getattr(info.config, name), getattr(wanted, name)
        if name == "subjects":
            actual, expected = sorted(actual or []), sorted(expected or [])
        if actual != expected and not (not actual and not expected):
            found.append((name, actual, expected))
    return found


def _shown(value: object) -> str:
    return repr(getattr(value, "value", value))
