"""The position where a consumer or replay begins: new, the beginning, a time or a sequence.

Guarantee: the result is always a sequence. A time is compared with the commit times of records, by
the database's clock. The start time of JetStream is the time when a message was stored, which after
a rebuild is the time of the rebuild. So the position is searched among the records (about twenty
requests for a million).

On failure: `InvalidInput` for a value that is not a position.
"""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import datetime
from typing import Literal
from uuid import UUID

from nats.js.client import JetStreamContext
from nats.js.errors import NotFoundError

from tocsin.client._mark_store import Mark
from tocsin.core.errors import InvalidInput
from tocsin.core.instant import check_aware

Start = Literal["new", "beginning"] | datetime | int


def check_start(start: object) -> None:
    if isinstance(start, datetime):
        check_aware(start, "start")
        return
    is_sequence = isinstance(start, int) and not isinstance(start, bool) and start >= 1
    if not is_sequence and start not in ("new", "beginning"):
        raise InvalidInput(
            f"start={start!r} is not a position in the stream",
            remedy="use 'new', 'beginning', an aware datetime, or a sequence from 1",
        )


async def find_start(js: JetStreamContext, stream: str, start: Start) -> Mark:
    """The mark before the first record to read."""
    state = (await js.stream_info(stream)).state
    first, last = max(int(state.first_seq), 1), int(state.last_seq)
    if isinstance(start, datetime):
        seq = await _last_before(js, stream, start, first, last)
    elif isinstance(start, int):
        seq = start - 1
    else:
        seq = last if start == "new" else first - 1
    return Mark(seq, await record_id(js, stream, seq))


async def record_id(js: JetStreamContext, stream: str, seq: int) -> UUID | None:
    """The id of the record at `seq`; None if the stream has no message there, or a gap."""
    body = await _body(js, stream, seq)
    if body is None or body.get("type") == "record-missing":
        return None
    with suppress(KeyError, ValueError, TypeError, AttributeError):
        return UUID(body["id"])
    return None


async def _last_before(js: JetStreamContext, stream: str, at: datetime, first: int, last: int) -> int:
    """The last sequence that was committed before `at`. Commit times rise with the sequence."""
    low, high = first - 1, last
    while low < high:
        middle = (low + high + 1) // 2
        seen, committed_at = middle, await _committed_at(js, stream, middle)
        while committed_at is None and seen > low + 1:  # no commit time: try the one before
            seen -= 1
            committed_at = await _committed_at(js, stream, seen)
        if committed_at is None or committed_at < at:
            low = middle
        else:
            high = seen - 1
    return low


async def _committed_at(js: JetStreamContext, stream: str, seq: int) -> datetime | None:
    body = await _body(js, stream, seq)
    with suppress(KeyError, ValueError, TypeError, AttributeError):
        committed_at = datetime.fromisoformat((body or {}).get("recordedat") or (body or {})["time"])
        return committed_at if committed_at.tzinfo else None
    return None


async def _body(js: JetStreamContext, stream: str, seq: int) -> dict[str, str] | None:
    if seq < 1:
        return None
    try:
        message = await js.get_msg(stream, seq=seq)
    except NotFoundError:
        return None
    with suppress(ValueError):
        body = json.loads(message.data or b"")
        return body if isinstance(body, dict) else None
    return None
