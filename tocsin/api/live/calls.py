"""The calls of the WebSocket: list, count, history, stats, failed and get, over schedules.

A schedule that waits for its next fire is pending. `history` lists schedules by their last change, with
the result of the newest run of their own action. Reads only, and only owners that the caller may view.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from tocsin.api.access.permission import Access
from tocsin.core.db import Connection, fetch_dicts, fetch_value
from tocsin.core.errors import InvalidInput, NotFound
from tocsin.policy import Operation

MAX_ROWS = 500
MAX_COUNTED = 100_000
STATUSES: Mapping[str, tuple[str, ...]] = {
    "pending": ("active", "paused"),
    "completed": ("fired", "ended"),
    "failed": ("failed",),
    "cancelled": ("cancelled",),
}
"""The statuses of schedules, by the words that clients of other schedulers use."""
Row = dict[str, Any]


class NoArguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ListArguments(NoArguments):
    limit: int = Field(default=50, ge=1, le=MAX_ROWS)


class HistoryArguments(ListArguments):
    status: str | None = Field(default=None, max_length=20)
    process: str | None = Field(default=None, max_length=128, description="The action of the schedule.")
    since: float | None = Field(default=None, ge=0, le=253_402_300_799, description="Unix time in seconds.")


class GetArguments(NoArguments):
    id: uuid.UUID


async def list_pending(connection: Connection, access: Access, arguments: ListArguments) -> list[Row]:
    rows = await fetch_dicts(
        connection, "tocsin.api.live/list_pending", {"owners": owners_of(access), "limit": arguments.limit}
    )
    return [_pending(row) for row in rows]


async def count_pending(connection: Connection, access: Access, arguments: NoArguments) -> int:
    parameters = {"owners": owners_of(access), "limit": MAX_COUNTED}
    return int(await fetch_value(connection, "tocsin.api.live/count_pending", parameters))


async def read_history(connection: Connection, access: Access, arguments: HistoryArguments) -> list[Row]:
    since = None if arguments.since is None else datetime.fromtimestamp(arguments.since, UTC)
    statuses = None if arguments.status is None else _statuses(arguments.status)
    return await _history(
        connection, access, statuses=statuses, action=arguments.process, since=since, limit=arguments.limit
    )


async def read_failed(connection: Connection, access: Access, arguments: ListArguments) -> list[Row]:
    return await _history(connection, access, statuses=["failed"], limit=arguments.limit)


async def read_stats(connection: Connection, access: Access, arguments: NoArguments) -> Row:
    rows = await fetch_dicts(connection, "tocsin.api.live/count_statuses", {"owners": owners_of(access)})
    numbers = {row["status"]: row["number"] for row in rows}
    named = {word: sum(numbers.get(status, 0) for status in of) for word, of in STATUSES.items()}
    return {"total": sum(numbers.values()), **named}


async def get_one(connection: Connection, access: Access, arguments: GetArguments) -> Row:
    rows = await _history(connection, access, id=arguments.id, limit=1)
    if not rows:
        raise NotFound(f"there is no schedule {str(arguments.id)!r}", remedy="the call `list` lists them")
    return rows[0]


Call = Callable[[Connection, Access, Any], Awaitable[Any]]
CALLS: Mapping[str, tuple[type[NoArguments], Call]] = {
    "list": (ListArguments, list_pending),
    "count": (NoArguments, count_pending),
    "history": (HistoryArguments, read_history),
    "stats": (NoArguments, read_stats),
    "failed": (ListArguments, read_failed),
    "get": (GetArguments, get_one),
}


def owners_of(access: Access) -> list[str]:
    return access.owners_of(Operation.VIEW_SCHEDULES)


def _statuses(word: str) -> list[str]:
    if word in STATUSES:
        return list(STATUSES[word])
    raise InvalidInput(f"unknown status {word!r}", remedy=f"use one of {', '.join(STATUSES)}")


async def _history(connection: Connection, access: Access, **filters: Any) -> list[Row]:
    none = {"id": None, "statuses": None, "action": None, "since": None}
    parameters = {**none, **filters, "owners": owners_of(access)}
    rows = await fetch_dicts(connection, "tocsin.api.live/list_history", parameters)
    return [_ended(row) for row in rows]


def _pending(row: Row) -> Row:
    return {
        **row,
        "set_at": row["fire_at"].timestamp(),
        "time_offset": (row["fire_at"] - row["created_at"]).total_seconds(),
    }


def _ended(row: Row) -> Row:
    started_at, ended_at = row["started_at"], row["ended_at"]
    took = None if ended_at is None else round((ended_at - started_at).total_seconds() * 1000)
    return {**row, "duration_ms": took}
