"""The interface of a lane, and of the plan for one batch.

Guarantee: `Lane.plan` is called without any lock, and its `BatchPlan` inside one transaction:
`stage` before the row of the partition is locked, `write` after. Everything that `write` does
commits together with the new position of the partition.

If something that was read for the plan has changed, `write` raises `Conflict`. The transaction is
rolled back, and the same messages are planned again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from nats.js.client import JetStreamContext

from rules.lanes.arrival_gap import ArrivalGap
from rules.lanes.data_stream import is_canary_subject
from tocsin.core.db import Connection


class LaneMessage(NamedTuple):
    """A message of a lane.

    `at` is when the server stored it, and never decreases within a partition.
    """

    seq: int
    at: datetime
    subject: str
    data: bytes
    source_seq: int | None = None
    """Its sequence in the stream that it was sourced from; None if it was published here."""
    gap_began_at: datetime | None = None
    """The start of the arrival gap that this message ended; None if there was none."""
    stored_at: datetime | None = None
    """When the server stored it, by its own clock; None if it was read from the table."""
    lineage: tuple[str, ...] = ()
    """The action_rules that led to it, of a datapoint that a run sent (`rules.lanes.lineage`)."""

    @property
    def is_canary(self) -> bool:
        return is_canary_subject(self.subject)

    @property
    def has_effects(self) -> bool:
        """Whether it has to be committed; false for a canary that ended no gap."""
        return self.gap_began_at is not None or not self.is_canary


def ended_gaps(messages: Iterable[LaneMessage]) -> list[ArrivalGap]:
    """The arrival gaps that messages ended."""
    return [
        ArrivalGap(message.gap_began_at, message.at)
        for message in messages
        if message.gap_began_at is not None
    ]


class BatchPlan(Protocol):
    """The writes of one batch of messages."""

    async def stage(self, connection: Connection) -> None:
        """Copy rows to the session, taking no lock that another session could wait for.

        A process may be frozen in the middle of a COPY for any time.
        """

    async def write(self, connection: Connection) -> None:
        """Timers in key order, then entities in key order, then one append."""

    def committed(self) -> None:
        """Called after the commit: counts what was done."""


class Lane(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def stream(self) -> str: ...

    @property
    def dead_letter_kind(self) -> str:
        """The kind of the dead letters of this lane."""

    @property
    def max_batch(self) -> int:
        """The largest number of messages in one transaction."""

    @property
    def has_stable_sequences(self) -> bool:
        """Whether a stream that was created again has the same messages at the same sequences."""

    def subjects(self, partition: int) -> list[str]:
        """The subject filters of a partition."""

    def is_sourced(self, subject: str) -> bool:
        """Whether the server itself took a message with this subject from another stream.

        A lane decides by the subject, on which no producer can publish, and never by a header.
        """

    async def read_stored(self, connection: Connection, after: int, limit: int) -> list[LaneMessage]:
        """The messages behind `after` that the stream no longer has, from the table.

        Only of a lane whose stream has stable sequences. None if the table lacks the next one.
        """

    def source_of(self, message: LaneMessage) -> str:
        """The source of a message, such as its owner.

        Messages of different sources fail in the same way only for a common cause.
        """

    def canary_subject(self, partition: int) -> str | None:
        """The subject of canaries to a partition; None if the lane has none, and so no gaps."""

    async def open(self, connection: Connection, js: JetStreamContext) -> None:
        """Create or check what the lane needs: its stream, and its rows in `lane_partition`."""

    async def plan(
        self,
        connection: Connection,
        partition: int,
        messages: Sequence[LaneMessage],
        gaps: Sequence[ArrivalGap] = (),
    ) -> BatchPlan:
        """`gaps` are those that the messages ended; the caller records them."""

    def watermark_of(self, message: LaneMessage) -> datetime | None:
        """The watermark after `message` was read, on the clock of the lane's deadlines."""

    async def idle_watermark(self, connection: Connection, position: int) -> datetime | None:
        """The watermark while no message comes; None if it does not move.

        Everything that arrived up to then is at or before `position`.
        """
