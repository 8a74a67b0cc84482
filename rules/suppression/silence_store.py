"""Stores silences: each one with the one-shot schedule of its end.

Guarantee: a silence and its schedule, which has the same id, are written in one transaction, timers
first (ARCHITECTURE.md, lock order). The event of the schedule is `silence-ended`. Users' schedules
cannot have the owner of these schedules, and lists of schedules leave them out.

The functions take part in the transaction of the caller, who appends the events.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from rules.suppression.suppression import Silence
from rules.suppression.windows import next_window
from schemas.wire.silence_events import SILENCE_ENDED, SILENCE_OWNER, SilenceFacts, silence_payload
from timers.recurrence import parse, parse_spec
from tocsin.core.columns import column
from tocsin.core.db import Connection, fetch_all, fetch_dicts, fetch_value, statement
from tocsin.core.id_prefix import IdPrefix
from tocsin.core.instant import instant_text

Row = dict[str, Any]
MAX_ACTIVE_SILENCES = 1_000


@dataclass(frozen=True)
class NewSilence:
    """A silence to store. `recurrence` is the specification of a maintenance."""

    matcher: str
    starts_at: datetime
    ends_at: datetime
    reason: str
    created_by: str
    source: str = "operator"
    recurrence: Mapping[str, Any] | None = None
    id: uuid.UUID = field(default_factory=uuid.uuid4)

    @property
    def facts(self) -> SilenceFacts:
        return SilenceFacts(
            self.id, self.matcher, self.starts_at, self.ends_at, self.reason, self.created_by, self.source
        )


def following_silence(ended: Row, now: datetime) -> NewSilence | None:
    """The next window of a maintenance whose window has ended; None if there is none."""
    if ended["recurrence"] is None:
        return None
    duration: timedelta = ended["ends_at"] - ended["starts_at"]
    window = next_window(parse_spec(ended["recurrence"]), duration, now, ended["starts_at"])
    if window is None:
        return None
    return NewSilence(
        ended["matcher"],
        *window,
        reason=ended["reason"],
        created_by=ended["created_by"],
        source=ended["source"],
        recurrence=ended["recurrence"],
    )


async def arm_ends(connection: Connection, silences: Sequence[NewSilence]) -> None:
    if silences:
        columns = {
            "ids": [str(silence.id) for silence in silences],
            "ends_at": [silence.ends_at for silence in silences],
            "identities": [instant_text(silence.ends_at) for silence in silences],
        }
        await connection.execute(statement("rules.suppression/arm_ends"), columns)


async def insert_silences(
    connection: Connection, silences: Sequence[NewSilence], *, via: str, now: datetime
) -> None:
    """Insert silences whose ends are armed."""
    if not silences:
        return
    columns = {
        "ids": column(silence.id for silence in silences),
        "matchers": column(silence.matcher for silence in silences),
        "starts_at": column(silence.starts_at for silence in silences),
        "ends_at": column(silence.ends_at for silence in silences),
        "reasons": column(silence.reason for silence in silences),
        "created_by": column(silence.created_by for silence in silences),
        "sources": column(silence.source for silence in silences),
        "recurrences": column(silence.recurrence for silence in silences),
        "schedules": column(parse(at=instant_text(silence.ends_at)).spec for silence in silences),
        "payloads": column(silence_payload(silence.facts) for silence in silences),
    }
    constant = {"owner": SILENCE_OWNER, "type": SILENCE_ENDED, "via": via, "now": now}
    await connection.execute(statement("rules.suppression/insert_silences"), {**columns, **constant})


async def disarm_ends(connection: Connection, ids: Iterable[uuid.UUID]) -> None:
    refs = [str(id) for id in ids]
    if refs:
        await connection.execute(statement("rules.suppression/disarm_ends"), {"refs": refs})


async def end_silences(connection: Connection, ids: Sequence[uuid.UUID], now: datetime) -> list[Row]:
    """End silences now, or at their end if that has passed; returns those that had not ended."""
    if not ids:
        return []
    return await fetch_dicts(connection, "rules.suppression/end_silences", {"ids": list(ids), "now": now})


async def read_silences(connection: Connection) -> list[Silence]:
    """The silences in force now."""
    return [Silence(*row) for row in await fetch_all(connection, "rules.suppression/read_silences")]


async def list_windows(connection: Connection, sources: Sequence[str]) -> list[Row]:
    """The windows of maintenances that have not ended."""
    if not sources:
        return []
    return await fetch_dicts(connection, "rules.suppression/list_windows", {"sources": list(sources)})


async def count_active_silences(connection: Connection) -> int:
    return int(await fetch_value(connection, "rules.suppression/count_active_silences"))


async def find_silence(connection: Connection, text: str) -> Row:
    """The silence with an id, or with an id that begins with `text`."""
    prefix = IdPrefix(text, "silence", "tocsin silence list --all")
    return prefix.only(await fetch_dicts(connection, "rules.suppression/find_silences", prefix.bounds()))


async def list_silences(connection: Connection, *, all: bool = False, limit: int = 100) -> list[Row]:
    return await fetch_dicts(connection, "rules.suppression/list_silences", {"all": all, "limit": limit})
