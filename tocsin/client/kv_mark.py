"""The mark in a NATS KV bucket, for services without a Postgres: one key per consumer, the last record that was
handled.

Guarantee: at least once, and in order. The effect comes first, then the key; a process that dies between the
two handles that one record again, so its effect should be idempotent (the record's `id` is the key for that).
Everything before it is never handled again, however old the redelivery.

Why in order only: one number can speak for all before it only if they were handled before it.

On failure: an effect that is done and a key that cannot be written is tried until it can. A key that has moved
on meanwhile (a process that was frozen) is left as it is, and said.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

from nats.errors import Error as NatsError
from nats.js.api import StreamConfig
from nats.js.errors import NotFoundError

from tocsin.client._inbox_protocol import KeepAway, Mark, Place, Unusable, Work
from tocsin.client.streams import made
from tocsin.core.streams import stream_config

_log = logging.getLogger("tocsin.client")
_TIMEOUT_S = 5.0
_PAUSE_S = 0.5
_NO_MESSAGE = 10037
_WRONG_LAST_SEQUENCE = 10071


class KvMark:
    """The bucket is `<namespace>-consumers`, the key the consumer's name."""

    in_order_only = True

    @asynccontextmanager
    async def opened(self, place: Place) -> AsyncIterator[OpenKvMark]:
        await made(place.bus, mark_bucket(place.namespace, place.replicas))
        yield OpenKvMark(place)


def mark_bucket(namespace: str, replicas: int) -> StreamConfig:
    bucket = f"{namespace}-consumers"
    return stream_config(
        f"KV_{bucket}",
        [f"$KV.{bucket}.>"],
        replicas,
        max_msgs_per_subject=1,
        allow_rollup_hdrs=True,
        deny_delete=True,
    )


class OpenKvMark:
    def __init__(self, place: Place) -> None:
        self._bus = place.bus
        self._bucket = f"KV_{place.namespace}-consumers"
        self._subject = f"$KV.{place.namespace}-consumers.{place.consumer}"

    async def mark(self) -> Mark | None:
        return (await self._read())[0]

    async def begin(self, mark: Mark) -> Mark:
        await self._write(mark, 0)
        return await self.mark() or mark

    async def are_handled(self, seqs: list[int]) -> bool:
        mark = await self.mark()
        return max(seqs, default=0) <= (mark.seq if mark else 0)

    async def once(self, record: Mark, work: Work) -> bool:
        mark, revision = await self._read()
        if mark is None:
            raise Unusable(f"the key {self._subject!r} is gone: start the consumer again")
        if record.seq <= mark.seq:
            return False
        await work(None)
        while True:
            try:
                if not await self._write(record, revision):
                    _log.warning("record %s: another process handled it meanwhile", record.seq)
                return True
            except KeepAway as away:
                _log.warning("record %s is handled, but cannot be noted yet: %s", record.seq, away)
                await asyncio.sleep(_PAUSE_S)

    async def raise_to(self, mark: Mark) -> None:
        """Nothing to do: the key is moved with every record."""

    async def _read(self) -> tuple[Mark | None, int]:
        """The mark and its revision."""
        try:
            found = await self._bus.jetstream(timeout=_TIMEOUT_S).get_last_msg(self._bucket, self._subject)
        except NotFoundError as error:
            if error.err_code == _NO_MESSAGE:
                return None, 0
            raise Unusable(f"the bucket {self._bucket!r} is gone: start the consumer again") from None
        except (NatsError, OSError, TimeoutError) as error:
            raise KeepAway(f"nats does not answer: {error!r}") from None
        if not found.data:  # deleted by a person
            return None, found.seq or 0
        try:
            value = json.loads(found.data)
            return Mark(int(value["seq"]), UUID(value["id"]) if value.get("id") else None), found.seq or 0
        except (ValueError, KeyError, TypeError):
            raise Unusable(
                f"the key {self._subject!r} holds {found.data[:80]!r}, which is no mark: remove it"
            ) from None

    async def _write(self, mark: Mark, revision: int) -> bool:
        """False: the key has moved on."""
        value = json.dumps({"seq": mark.seq, "id": str(mark.id) if mark.id else None}).encode()
        headers = {"Nats-Expected-Last-Subject-Sequence": str(revision)}
        try:
            answer = await self._bus.request(self._subject, value, timeout=_TIMEOUT_S, headers=headers)
        except (NatsError, OSError, TimeoutError) as error:
            raise KeepAway(f"nats does not answer: {error!r}") from None
        refusal = json.loads(answer.data).get("error")
        if refusal is None:
            return True
        if refusal.get("err_code") == _WRONG_LAST_SEQUENCE:
            return False
        raise KeepAway(f"nats refused the key {self._subject!r}: {refusal.get('description')}")
