"""Pulls from a JetStream consumer without waiting for a full batch.

Guarantee: `next_batch` returns as soon as one message has arrived, with all that have arrived by
then, and an empty list if none came in time. nats-py's own `fetch` of several messages waits for
all of them or its timeout, which would add that timeout to every reaction.

Why each request has its own reply subject: the server ends every request with a status. The status
of an older request must not end the newer one, or requests would multiply.

Why a queue of our own: `next_msg` waits with `asyncio.wait_for`, which in Python 3.11 swallows a
cancellation that coincides with a message. A worker that is stopped at that moment would never end.

Why a group: the server sends the messages of a pinned consumer to one client of the group, until
that client requests nothing for a while. The first message carries the pin, which every further
request repeats.

On failure: a request that was lost with its connection is repeated after the reconnect. A missing
consumer (its stream was created again), or one that another process configured differently, raises
`ConsumerGone`; the caller creates it again. A new consumer on a cluster has no leader for a moment,
and the server then answers as if it were missing: for `_LEADERLESS_S` after the start, until its
first answer, the request is repeated.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from contextlib import suppress

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError

from tocsin.core.cancellation import cancellable
from tocsin.core.errors import TocsinError
from tocsin.core.nats_client import api_of

_EXPIRES_S = 5.0
_LOST_S = _EXPIRES_S + 2.0
_DRAIN_S = 2.0
_PIN = "Nats-Pin-Id"
_WRONG_PIN = "423"
_LEADERLESS_S = 3.0
_REPEAT_S = 0.1
# Longest wait for the answer to a request that the server answers at once.
_READY_S = 1.0


class ConsumerGone(TocsinError):
    """The consumer or its stream no longer exists."""


class Puller:
    def __init__(
        self, bus: Client, subject: str, inbox: str, batch: int, arrival: asyncio.Event | None = None
    ) -> None:
        self._bus = bus
        self._arrived: deque[Msg] = deque()
        self._arrival = arrival or asyncio.Event()
        self._subject = subject
        self._inbox = inbox
        self._batch = batch
        self._outstanding = 0
        self._requested_s = 0.0
        self._request = 0
        self._connection = 0
        self._max_bytes = 0
        self._group: str | None = None
        self._pin: str | None = None
        self._leaderless_until_s = time.monotonic() + _LEADERLESS_S
        self._is_leaderless = False
        self._subscription: Subscription | None = None

    @classmethod
    async def open(
        cls,
        bus: Client,
        stream: str,
        consumer: str,
        batch: int,
        max_bytes: int = 0,
        group: str | None = None,
        arrival: asyncio.Event | None = None,
    ) -> Puller:
        """Open a puller.

        `max_bytes` limits a request, unless it is 0; it must exceed the largest message. `group` is
        the group of a pinned consumer. `arrival` is set when a message arrives; several pullers can
        share it.
        """
        inbox = bus.new_inbox()
        puller = cls(bus, f"{api_of(bus)}.CONSUMER.MSG.NEXT.{stream}.{consumer}", inbox, batch, arrival)
        puller._max_bytes = max_bytes
        puller._group = group
        # No limit of bytes: the request bounds what can arrive, and nats-py drops messages beyond a
        # limit.
        puller._subscription = await bus.subscribe(f"{inbox}.*", cb=puller._receive, pending_bytes_limit=-1)
        return puller

    async def close(self) -> None:
        if self._subscription is not None:
            with suppress(NatsError, OSError):  # the connection may be gone, and with it the subscription
                await self._subscription.unsubscribe()

    async def drain(self) -> list[Msg]:
        """Close, and return the messages that were delivered and not taken.

        This includes messages in transit: a consumer with acknowledgements would miss them for the
        length of its ack wait.
        """
        if self._subscription is not None and self._bus.is_connected:
            with suppress(NatsError, OSError, TimeoutError):
                async with asyncio.timeout(_DRAIN_S):
                    await cancellable(self._subscription.drain())  # type: ignore[no-untyped-call]
        await self.close()
        return self.arrived()

    async def next_batch(self, timeout_s: float = 1.0, at_most: int | None = None) -> list[Msg]:
        """The next messages. `at_most` is for a caller that can take less than a batch."""
        batch = min(at_most or self._batch, self._batch)
        give_up_s = time.monotonic() + timeout_s
        while True:
            await self._request_batch(batch)
            self._arrival.clear()
            if not self._arrived:
                with suppress(TimeoutError):
                    async with asyncio.timeout(give_up_s - time.monotonic()):
                        await self._arrival.wait()
            self._is_leaderless = False
            messages = self._take(batch)
            if not self._is_leaderless or time.monotonic() > give_up_s:
                return messages
            await asyncio.sleep(_REPEAT_S)

    async def ready(self, at_most: int) -> list[Msg]:
        """The messages that the server has now, without waiting for others.

        An open request that was not answered means that it has none.
        """
        messages = self._take(at_most)
        if len(messages) == at_most or self._is_waiting():
            return messages
        await self._request_batch(at_most - len(messages), no_wait=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(_READY_S):
                while self._outstanding > 0:
                    self._arrival.clear()
                    if not self._arrived:
                        await self._arrival.wait()
                    messages += self._take(at_most - len(messages))
        return messages

    async def listen(self) -> None:
        """Ask for the next message, without waiting for it. `ready` returns it."""
        if self._is_leaderless:
            self._is_leaderless = False
            await asyncio.sleep(_REPEAT_S)
        await self._request_batch(1)

    def _is_waiting(self) -> bool:
        return self._outstanding > 0 and not self._is_lost()

    def _take(self, batch: int) -> list[Msg]:
        messages: list[Msg] = []
        while self._arrived and len(messages) < batch:
            message = self._arrived.popleft()
            if self._is_message(message):
                messages.append(message)
        return messages

    @property
    def is_pinned(self) -> bool:
        """Whether the server sends the messages of the group to this client."""
        return self._pin is not None

    def arrived(self) -> list[Msg]:
        """The messages that were delivered and not taken yet."""
        return [message for message in self._arrived if not self._is_of_server(message)]

    @property
    def has_arrivals(self) -> bool:
        return bool(self._arrived)

    def take_arrived(self) -> list[Msg]:
        """Take what was delivered without asking for more."""
        return self._take(len(self._arrived))

    async def _receive(self, message: Msg) -> None:
        self._arrived.append(message)
        self._arrival.set()

    def _is_lost(self) -> bool:
        return (
            time.monotonic() - self._requested_s > _LOST_S
            or self._bus.stats["reconnects"] != self._connection
        )

    async def _request_batch(self, at_most: int = 0, *, no_wait: bool = False) -> None:
        """Keep one request open at the server, by default for a whole batch."""
        batch = at_most or self._batch
        if self._is_waiting():
            return
        self._request += 1
        self._outstanding = batch
        self._requested_s = time.monotonic()
        self._connection = self._bus.stats["reconnects"]
        options = {"max_bytes": self._max_bytes, "group": self._group, "id": self._pin}
        end = {"no_wait": True} if no_wait else {"expires": int(_EXPIRES_S * 1e9)}
        request = {"batch": batch, **end}
        given = {name: value for name, value in options.items() if value}
        reply = f"{self._inbox}.{self._request}"
        await self._bus.publish(self._subject, json.dumps({**request, **given}).encode(), reply=reply)

    def _is_of_server(self, message: Msg) -> bool:
        """Whether the server answers a request itself. Its answers have the reply subject, messages of
        a stream have their own. A header does not tell: a producer can write `Status` as well."""
        return message.subject.startswith(f"{self._inbox}.") and not message.data

    def _is_message(self, message: Msg) -> bool:
        status = (message.headers or {}).get("Status") if self._is_of_server(message) else None
        if status is None:
            self._outstanding -= 1
            self._pin = (message.headers or {}).get(_PIN, self._pin)
            self._leaderless_until_s = 0.0
            return True
        if message.subject != f"{self._inbox}.{self._request}":
            return False
        self._outstanding = 0
        self._pin = None if status == _WRONG_PIN else self._pin
        description = str((message.headers or {}).get("Description", ""))
        if status == "503" and time.monotonic() < self._leaderless_until_s:
            self._is_leaderless = True
            return False
        self._leaderless_until_s = 0.0
        if status in ("400", "503") or "eleted" in description:
            raise ConsumerGone(
                f"the consumer {self._subject.rpartition('.')[2]!r} {_problem(status, description)}"
            )
        return False


def _problem(status: str, description: str) -> str:
    if status == "503":
        return "does not answer (503): it was removed, or too few servers of the cluster run"
    return f"{'rejects the request' if status == '400' else 'is gone'}: {status} {description}"
