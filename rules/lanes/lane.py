"""What a lane is, and where work joins its batches.

Guarantee: `Lane.plan` is called without any lock, its `Plan` inside one transaction: `stage` before the partition's
row is locked, `write` after. Everything that `write` does commits together with the partition's new position.

Work that cannot be done as planned, because what was read before changed meanwhile, raises `Conflict` in
`write`: the transaction is rolled back, and the same messages are planned again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from nats.js.client import JetStreamContext

from tocsin.core.db import Connection


class Message(NamedTuple):
    """A message of a lane. `at` is when the server stored it, and never goes back within a partition."""

    seq: int
    at: datetime
    subject: str
    data: bytes
    source_seq: int | None = None
    """Its sequence in the stream that it was sourced from; None for one that was published to this stream."""


class Plan(Protocol):
    """What a batch of messages does to Postgres."""

    async def stage(self, connection: Connection) -> None:
        """Bring rows to the session, taking no lock that another session could wait for: a process may be
        frozen in the middle of a COPY for as long as it likes."""

    async def write(self, connection: Connection) -> None:
        """Timers in key order, then entities in key order, then one append."""

    def committed(self) -> None:
        """It is so now: what it did is counted."""


class Lane(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def stream(self) -> str: ...

    @property
    def dead_letters(self) -> str:
        """The kind under which messages are set aside."""

    @property
    def batch(self) -> int:
        """Most messages of one transaction."""

    @property
    def has_stable_sequences(self) -> bool:
        """Whether a stream that was made anew has the same messages at the same sequences."""

    def subject(self, partition: int) -> str:
        """Which messages of the stream belong to the partition."""

    async def open(self, connection: Connection, js: JetStreamContext) -> None:
        """Make or check what the lane stands on: its stream, and its rows in `lane_partition`."""

    async def plan(self, connection: Connection, partition: int, messages: Sequence[Message]) -> Plan: ...

    def watermark_of(self, message: Message) -> datetime | None:
        """Up to when everything has been read, once `message` has; on the clock that verdicts of this lane run on."""

    async def idle_watermark(
        self, connection: Connection, position: int, stored_at: datetime | None
    ) -> datetime | None:
        """The same while nothing comes: an instant up to which everything that arrived is at or before `position`.

        `stored_at`: everything that the stream's server stored up to then is; None if that is not known.
        """
