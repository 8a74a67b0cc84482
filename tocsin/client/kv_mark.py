"""The mark in a NATS KV bucket, for services without Postgres: one key per consumer.

Guarantee: at least once, in order. The handler runs first, then the key is written. A process that
dies between the two handles that one record again, so the handler should be idempotent (the `id` of
the record is a key for that). Earlier records are never handled again, however late NATS redelivers
them.

Why in order only: one sequence stands for all records before it only if they were handled before
it.

On failure: if the handler has finished and the key cannot be written, the write is retried until it
succeeds. A key that another process moved meanwhile (this one was frozen) stays as it is, and the
case is logged.
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

from tocsin.client._mark_store import ConsumerContext, Mark, StoreUnreachable, Unusable, Work
from tocsin.client._streams import create_missing
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
    async def open(self, context: ConsumerContext) -> AsyncIterator[OpenKvMark]:
        await create_missing(context.bus, mark_bucket(context.namespace, context.replicas))
        yield OpenKvMark(context)


def mark_bucket(namespace: str, replicas: int) -> StreamConfig:
    bucket = f"{namespace}-consumers"
    return stream_config(
        f"KV_{bucket}",
        [f"$KV.{bucket}.>"],
        replicas,
        max_msgs_per_subject=1,
        # Without rollups: the rollup of one consumer would remove the marks of all others.
        deny_delete=True,
    )


class OpenKvMark:
    def __init__(self, context: ConsumerContext) -> None:
        self._bus = context.bus
        self._bucket = f"KV_{context.namespace}-consumers"
        self._key = context.consumer
        self._subject = f"$KV.{context.namespace}-consumers.{context.consumer}"

    async def mark(self) -> Mark | None:
        return (await self._read())[0]

    async def begin(self, mark: Mark) -> Mark:
        stored, revision = await self._read()
        if stored is None:
            await self._write(mark, revision)
        return stored or await self.mark() or mark

    async def handled_beyond(self, seq: int, until: int, limit: int) -> list[int]:
        """Nothing: the mark is the last handled record."""
        return []

    async def once(self, record: Mark, work: Work) -> bool:
        mark, revision = await self._read()
        if mark is None:
            raise Unusable(f"the key {self._subject!r} is gone", remedy="start the consumer again")
        if record.seq <= mark.seq:
            return False
        await work(None)
        while True:
            try:
                if not await self._write(record, revision):
                    _log.warning("record %s: another process has handled it meanwhile", record.seq)
                return True
            except StoreUnreachable as away:
                _log.warning("record %s is handled, but the mark cannot be written yet: %s", record.seq, away)
                await asyncio.sleep(_PAUSE_S)

    async def raise_mark(self, before: int, mark: Mark, handled: int) -> bool:
        """Nothing to do: `once` writes the key."""
        return True

    async def _read(self) -> tuple[Mark | None, int]:
        """The mark and its revision; (None, revision) if there is no mark."""
        try:
            message = await self._bus.jetstream(timeout=_TIMEOUT_S).get_last_msg(self._bucket, self._subject)
        except NotFoundError as error:
            if error.err_code == _NO_MESSAGE:
                return None, 0
            raise Unusable(
                f"the bucket {self._bucket!r} is gone", remedy="start the consumer again"
            ) from None
        except (NatsError, OSError, TimeoutError) as error:
            raise StoreUnreachable(f"nats does not answer: {error!r}") from None
        if not message.data:  # deleted by an operator
            return None, message.seq or 0
        try:
            value = json.loads(message.data)
            return Mark(int(value["seq"]), UUID(value["id"]) if value.get("id") else None), message.seq or 0
        except (ValueError, KeyError, TypeError):
            raise Unusable(
                f"the key {self._subject!r} holds {message.data[:80]!r}, which is not a mark",
                remedy=f"remove it with `nats kv del {self._bucket.removeprefix('KV_')} {self._key}`",
            ) from None

    async def _write(self, mark: Mark, revision: int) -> bool:
        """Write the key; False if its revision is no longer `revision`."""
        value = json.dumps({"seq": mark.seq, "id": str(mark.id) if mark.id else None}).encode()
        headers = {"Nats-Expected-Last-Subject-Sequence": str(revision)}
        try:
            answer = await self._bus.request(self._subject, value, timeout=_TIMEOUT_S, headers=headers)
        except (NatsError, OSError, TimeoutError) as error:
            raise StoreUnreachable(f"nats does not answer: {error!r}") from None
        refusal = json.loads(answer.data).get("error")
        if refusal is None:
            return True
        if refusal.get("err_code") == _WRONG_LAST_SEQUENCE:
            return False
        raise StoreUnreachable(f"nats rejected the key {self._subject!r}: {refusal.get('description')}")
