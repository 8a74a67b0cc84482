"""The interface of the store in which a consumer keeps how far it has handled the record stream.

This store, and not the acknowledgements in NATS, decides whether a record is handled.

Guarantee: however often and wherever a record is delivered, `once` runs its work once. With `Inbox`
that is exact, because the work and the note about it commit together. With `KvMark` a process that
dies between the work and the note runs the work of that record again. The sequence of a record
never changes, so a sequence is all that has to be stored (the id only detects another log), and no
time window limits it.

On failure: `StoreUnreachable` if the store cannot be reached and the work was not begun; the caller
waits and tries again. `Unusable` if waiting does not help.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from nats.aio.client import Client

from tocsin.client.delivery import Delivery
from tocsin.core.errors import Refused, TocsinError

# Receives the connection of its transaction, or None if there is none.
Work = Callable[[Any], Awaitable[None]]


class StoreUnreachable(TocsinError):
    """The store cannot be reached at the moment."""


class Unusable(Refused):
    """The store or the handler is set up wrongly. Nothing can be consumed until that is fixed."""


@dataclass(frozen=True)
class Mark:
    """Everything up to `seq` is handled.

    `id` is the id of the record at `seq`. If the stream has another id there, it is the stream of
    another log.
    """

    seq: int
    id: UUID | None = None


@dataclass(frozen=True)
class ConsumerContext:
    """The stream and the consumer that a store is opened for."""

    bus: Client
    namespace: str
    consumer: str
    replicas: int
    delivery: Delivery


class OpenMarkStore(Protocol):
    async def mark(self) -> Mark | None:
        """The stored mark; None before the first start of the consumer."""

    async def begin(self, mark: Mark) -> Mark:
        """Store the first mark. Returns the stored one: that of another process if it was faster."""

    async def handled_beyond(self, seq: int, until: int, limit: int) -> list[int]:
        """The handled records after the mark `seq`, at most `limit`, in order."""

    async def once(self, record: Mark, work: Work) -> bool:
        """Run the work of a record; False if the record was handled before.

        `record` has the seq and the id of the record.
        """

    async def raise_mark(self, before: int, mark: Mark, handled: int) -> bool:
        """Move the mark from `before`, over `handled` records that the store has.

        False, and nothing moves, if the mark or these records are no longer there.
        """


class MarkStore(Protocol):
    in_order_only: bool
    """Whether the store can only be used with `concurrency=1`."""

    def open(self, context: ConsumerContext) -> AbstractAsyncContextManager[OpenMarkStore]: ...
