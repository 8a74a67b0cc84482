"""Reads and writes the lineage of events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from psycopg.types.json import Jsonb

from schemas.wire.event import Event
from tocsin.core.db import Connection, fetch_all, statement


async def read_lineages(connection: Connection, event_ids: Iterable[UUID]) -> Mapping[UUID, tuple[str, ...]]:
    """The lineages of those events that have one."""
    rows = await fetch_all(connection, "rules.lanes/read_lineages", {"ids": list(event_ids)})
    return {id: tuple(lineage) for id, lineage in rows}


async def read_lineages_of(connection: Connection, events: Iterable[Event]) -> Mapping[UUID, tuple[str, ...]]:
    """The lineages of those events that have one. The event of a schedule has none."""
    ids = {event.id for event in events if event.origin != "scheduled"}
    return await read_lineages(connection, ids) if ids else {}


async def insert_lineages(connection: Connection, lineages: Mapping[UUID, Sequence[str]]) -> None:
    """Write the lineages of events, in the transaction that appends them."""
    if lineages:
        columns = {
            "ids": list(lineages),
            "lineages": [Jsonb(list(lineage)) for lineage in lineages.values()],
        }
        await connection.execute(statement("rules.lanes/insert_lineages"), columns)
