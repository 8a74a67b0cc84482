"""The part that all three doors to the feed share: who may listen, for how long, and the checks meanwhile.

Guarantees: a connection ends within `CHECK_S` and the seconds that a token is kept
(`access/known_tokens.py`) after its credentials were revoked or its grants changed. While Postgres is away,
they cannot be checked: the connection stays open for at most `UNCHECKED_S`. A principal has at
most `MAX_CONNECTIONS` connections to the feed of a process, so that one cannot take all of them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import cast

from starlette.requests import HTTPConnection

from tocsin.api.access.credentials import authenticate
from tocsin.api.access.permission import Access
from tocsin.api.context import ApiContext
from tocsin.api.live.feed import LiveFeed
from tocsin.api.live.query import parse_query
from tocsin.api.live.selection import Selection
from tocsin.api.live.subscription import Subscription
from tocsin.api.problems import ProblemRaised
from tocsin.core.errors import InvalidInput, Unauthenticated
from tocsin.core.sql_errors import OUTAGE

NAME = "live"
HEARTBEAT_S = 15.0
CHECK_S = 15.0
UNCHECKED_S = 600.0
MAX_CONNECTIONS = 2000
_MAX_SEQ = 2**63 - 1


@dataclass
class LiveDoor:
    feed: LiveFeed
    connections: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def admit(self, access: Access) -> Iterator[None]:
        """Count a connection of a principal for the length of the block."""
        name = access.caller.name
        if self.connections[name] >= MAX_CONNECTIONS:
            raise ProblemRaised(
                "too-many",
                f"{name!r} has {MAX_CONNECTIONS} live connections to this process",
                remedy="close some, or share one connection",
            )
        self.connections[name] += 1
        try:
            yield
        finally:
            self.connections[name] -= 1
            if not self.connections[name]:
                del self.connections[name]


def door_of(context: ApiContext) -> LiveDoor:
    return cast(LiveDoor, context.parts[NAME])


def selection_of(access: Access, query: str) -> Selection:
    return Selection(access.caller.principal.grants, parse_query(query))


def seq_of(text: str | None, name: str) -> int | None:
    """A position that a client sends; None if it sends none."""
    if text is None or text == "":
        return None
    if not text.isascii() or not text.isdigit() or int(text) > _MAX_SEQ:
        raise InvalidInput(
            f"{name} is {text[:40]!r}", remedy="send the seq of a record, a whole number from 0"
        )
    return int(text)


class CredentialCheck:
    """Ends a subscription when the credentials of its connection are no longer the ones it began with."""

    def __init__(self, connection: HTTPConnection, access: Access) -> None:
        self._connection = connection
        self._grants = access.caller.principal.grants
        self._checked_s = self._valid_s = time.monotonic()

    async def run(self, *subscriptions: Subscription) -> str | None:
        """The reason to end, once in a while; None otherwise."""
        if time.monotonic() - self._checked_s < CHECK_S:
            return None
        self._checked_s = time.monotonic()
        try:
            caller = await authenticate(self._connection)
        except Unauthenticated:
            return self._end(subscriptions, "the credentials are no longer valid")
        except OUTAGE:
            # While Postgres is away, no token can be revoked and nothing is recorded.
            if time.monotonic() - self._valid_s < UNCHECKED_S:
                return None
            return self._end(subscriptions, "the credentials cannot be checked")
        self._valid_s = time.monotonic()
        if caller.principal.grants != self._grants:
            return self._end(subscriptions, "the grants have changed")
        return None

    def _end(self, subscriptions: tuple[Subscription, ...], reason: str) -> str:
        for subscription in subscriptions:
            subscription.end(reason)
        return reason
