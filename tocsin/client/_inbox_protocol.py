"""What a service keeps of the stream: up to where it has handled it. This decides, not what NATS remembers.

Guarantee: `once` does its work at most once per record as far as its kind can promise (see `Inbox` and
`KvMark`), however often and wherever the record is delivered. Because a record's sequence is its `seq` for
ever, a sequence is all that has to be kept, and no window limits it.

On failure: `KeepAway` when it cannot be reached now and the work was not begun: wait and ask again. `Unusable`
when waiting will not help.
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

# Given the connection of its transaction, or None where there is none.
Work = Callable[[Any], Awaitable[None]]


class KeepAway(TocsinError):
    """What a service keeps cannot be reached at the moment."""


class Unusable(Refused):
    """What a service keeps, or its handler, is not as it must be; nothing can be consumed until that is mended."""


@dataclass(frozen=True)
class Mark:
    """Everything up to `seq` is handled. `id` is the record there: it tells one log from another."""

    seq: int
    id: UUID | None = None


@dataclass(frozen=True)
class Place:
    """Whose stream is kept for whom."""

    bus: Client
    namespace: str
    consumer: str
    replicas: int
    delivery: Delivery


class Kept(Protocol):
    async def mark(self) -> Mark | None:
        """None before the first start of the consumer."""

    async def begin(self, mark: Mark) -> Mark:
        """Set the first mark; the one that stands if another process was quicker."""

    async def are_handled(self, seqs: list[int]) -> bool:
        """All of them."""

    async def once(self, record: Mark, work: Work) -> bool:
        """Do the work for a record; false if that was done before."""

    async def raise_to(self, mark: Mark) -> None:
        """Everything up to there is handled."""


class Keep(Protocol):
    in_order_only: bool

    def opened(self, place: Place) -> AbstractAsyncContextManager[Kept]: ...
