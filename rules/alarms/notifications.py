"""Reads notification runs for operators: what was delivered, what fails, and what is held. Reads only.

| state | meaning |
|---|---|
| `due` | a worker sends the message |
| `idle` | the channel knows the current state |
| `gathering` | a group waits for more alarms |
| `held` | every open alarm is suppressed |
| `failing` | the last delivery failed; it is tried again |
| `failed` | it was given up |
| `completed`, `cancelled` | over; only listed for an alarm |
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from tocsin.core.db import Connection, fetch_dicts, fetch_one
from tocsin.core.instant import instant_text

STATES = ("due", "idle", "gathering", "held", "failing", "failed")

Row = dict[str, Any]


class FailingNotifications(NamedTuple):
    """Notifications that cannot be delivered now, and those that were given up within the last day."""

    failing: int
    failing_since: datetime | None
    failed: int
    channels: tuple[str, ...]
    """Their channels, in the order of the alphabet."""
    now: datetime

    @property
    def channel_text(self) -> str:
        shown = ", ".join(self.channels[:3])
        return f"{shown} and {len(self.channels) - 3} more" if len(self.channels) > 3 else shown


async def list_notifications(
    connection: Connection,
    *,
    states: Sequence[str] | None = None,
    channel: str | None = None,
    alarm_id: UUID | None = None,
    owners: Sequence[str] | None = None,
    limit: int = 50,
) -> list[Row]:
    """Active notifications and those that were given up, the ones that fail first. With `alarm_id`: all
    notifications about an alarm, alone or in a group. With `owners`, only of these patterns."""
    filters = {
        "states": None if states is None else list(states),
        "channel": channel,
        "alarm_id": alarm_id,
        "owners": None if owners is None else list(owners),
        "limit": limit,
    }
    return await fetch_dicts(connection, "rules.alarms/list_notifications", filters)


async def read_failing(connection: Connection) -> FailingNotifications:
    row = await fetch_one(connection, "rules.alarms/count_failing_notifications")
    assert row is not None
    failing, failing_since, failed, channels, now = row
    return FailingNotifications(failing, failing_since, failed, tuple(sorted(channels or ())), now)


def status_text(row: Row) -> str:
    """The state of a notification in words: why a channel was notified, or was not."""
    state, messages = row["state"], row["messages"]
    sent = f"{_count(messages, 'message')} delivered"
    if row["delivered_at"] is not None:
        sent += f", the last at {instant_text(row['delivered_at'])}"
    fallback = (
        f"; {_count(row['fallback_messages'], 'message')} delivered to the fallback"
        if row["fallback_messages"]
        else ""
    )
    if state in ("failing", "failed"):
        verb = "fails" if state == "failing" else "was given up; it failed"
        since = f" since {instant_text(row['failing_since'])}" if row["failing_since"] is not None else ""
        return f"{verb}{since} ({_count(row['failures'], 'attempt')}): {row['error']}{fallback}"
    if state == "held":
        return f"held by {', '.join(row['held_by'] or ())}; {sent}{fallback}"
    if state == "gathering":
        next_at = f" until {instant_text(row['next_at'])}" if row["next_at"] is not None else ""
        return f"gathers alarms of its group{next_at}; {sent}{fallback}"
    if state in ("completed", "cancelled"):
        return f"{state}: {row['error']}" if row["error"] else state
    return f"{sent}{fallback}" if messages or fallback else "about to be sent"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
