"""Temporary consumers of a stream that other services have consumers of, too.

Guarantee: a user creates, reads and deletes only consumers of its own. NATS decides by the subject of
a request whose consumer it is about, but only if the subject has its name: without one, the body may
name any consumer, and change it. So a user with an inbox of its own (`_INBOX_<user>`) has a few
reserved names, `<user>-0` and so on, and its permissions name exactly these. With the common inbox,
the server chooses the name.

On failure: the answer of the server. If all names are in use, that of the last attempt: a consumer
that is no longer read ends by itself.
"""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from nats.aio.client import Client
from nats.errors import Error as NatsError

from tocsin.core.nats_client import api_of
from tocsin.nats_access.roles import reader_names

_INBOX = "_INBOX_"
_ALREADY_EXISTS = (10013, 10148)


async def create_temporary_consumer(
    bus: Client, stream: str, config: Mapping[str, Any], timeout_s: float, *, reserved_names: bool = True
) -> dict[str, Any]:
    """The answer of the server, with `name`, or with `error`.

    Without `reserved_names` the server chooses the name, for a stream whose consumers are all ours.
    """
    answer: dict[str, Any] = {}
    for name in _names(bus) if reserved_names else [""]:
        own = {"name": name, "metadata": {"reader": uuid.uuid4().hex}} if name else {}
        body = {"stream_name": stream, "config": {**config, **own}, "action": "create"}
        subject = f"{api_of(bus)}.CONSUMER.CREATE.{stream}{f'.{name}' if name else ''}"
        reply = await bus.request(subject, json.dumps(body).encode(), timeout=timeout_s)
        answer = json.loads(reply.data)
        if answer.get("error", {}).get("err_code") not in _ALREADY_EXISTS:
            break
    return answer


async def delete_temporary_consumer(bus: Client, stream: str, name: str) -> None:
    """Free the name. A consumer whose deletion fails ends by itself."""
    with suppress(NatsError, OSError, TimeoutError):
        await bus.publish(f"{api_of(bus)}.CONSUMER.DELETE.{stream}.{name}", b"")


def _names(bus: Client) -> list[str]:
    prefix = bytes(bus._inbox_prefix).decode()
    if not prefix.startswith(_INBOX):
        return [""]
    names = list(reader_names(prefix.removeprefix(_INBOX)))
    random.shuffle(names)
    return names
