"""The messages of an owner in the streams: datapoints that were read, and dead letters.

The record stream is not changed: it forbids to delete a message, so that no process can remove a record.
Its messages end with its age (`TOCSIN_STREAM_MAX_AGE_H`), or at once with `tocsin cdc rebuild`, which
writes the stream again from the erased log.
"""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import datetime
from typing import Any

from nats.js.client import JetStreamContext
from nats.js.errors import NotFoundError

from rules.lanes.data_stream import partition_of
from schemas.wire.dead_letter import DeadLetter
from schemas.wire.subjects import token
from tocsin.core.db import Connection, fetch_value
from tocsin.core.instant import parse_instant
from tocsin.core.settings import Settings
from tocsin.core.streams import find


async def purge_datapoints(
    connection: Connection, js: JetStreamContext, settings: Settings, owner: str
) -> int:
    """Remove the messages of the owner before the last message that its partition has read.

    That one stays: a reader recognises the stream by it. It ends with the age of the stream. Returns how
    many were removed.
    """
    owner_token = token(owner)
    partition = partition_of(owner_token, settings.data_partitions)
    read = await fetch_value(connection, "rules.erasure/read_data_position", {"partition": partition})
    if not read or await find(js, settings.data_stream) is None:
        return 0
    removed = 0
    for kind in ("data", "calculated"):
        subject = f"{settings.subjects}.{kind}.{partition}.{owner_token}.>"
        before = await _count(js, settings.data_stream, subject)
        if before:
            await js.purge_stream(settings.data_stream, seq=int(read), subject=subject)
            removed += before - await _count(js, settings.data_stream, subject)
    return removed


async def delete_letters(
    js: JetStreamContext, settings: Settings, stream: str, owner: str, until: datetime
) -> int:
    """Remove the dead letters about the owner, overwriting them. Returns how many."""
    info = await find(js, stream)
    if info is None:
        return 0
    deleted = 0
    for seq in range(max(1, info.state.first_seq), info.state.last_seq + 1):
        with suppress(NotFoundError):
            message = await js.get_msg(stream, seq)
            body = message.data or b""
            subject, content = message.subject or "", body
            if stream == settings.dead_stream:
                letter = DeadLetter.model_validate_json(body)
                if parse_instant(letter.at) > until:
                    continue
                subject, content = letter.subject, letter.body.encode()
            if _is_about(settings, subject, content, owner):
                await js.delete_msg(stream, seq)
                deleted += 1
    return deleted


def _is_about(settings: Settings, subject: str, body: bytes, owner: str) -> bool:
    words = subject.removeprefix(f"{settings.subjects}.").split(".")
    if words[0] == "datapoint":
        return words[1:2] == [token(owner)]
    if words[0] in ("data", "calculated") or (words[:2] == ["ingest", "event"] and len(words) > 2):
        return words[2:3] == [token(owner)]
    try:
        content: Any = json.loads(body)
    except (ValueError, RecursionError):
        # The beginning of a long message, or a broken one: what names the owner goes.
        return json.dumps(owner).encode() in body or json.dumps(owner, ensure_ascii=False).encode() in body
    return isinstance(content, dict) and content.get("owner") == owner


async def _count(js: JetStreamContext, stream: str, subject: str) -> int:
    info = await find(js, stream, subject)
    return sum((info.state.subjects or {}).values()) if info else 0
