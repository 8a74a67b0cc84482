"""Ends silences whose time has come and begins the next windows of maintenances, in the record lane.

Guarantee: the end of a window, its next window and the position of the lane commit together, so
each window is followed by one other. A window that would have ended before now is left out, so an
outage over whole windows leaves no trace of them. If a command or an apply ends the same silence
first, the batch is planned again.
"""

from __future__ import annotations

from collections.abc import Sequence

from rules.lanes.batch import Writes
from rules.suppression.silence_store import (
    NewSilence,
    Row,
    arm_ends,
    end_silences,
    following_silence,
    insert_silences,
)
from schemas.wire.event import Event
from schemas.wire.silence_events import ended_silence, silence_added_event
from timers.working_set import database_now
from tocsin.core.db import Connection, fetch_dicts
from tocsin.core.errors import Conflict
from tocsin.core.records import NewEvent, NewRecords

_VIA = "maintenance"


class SilenceEnds:
    """Takes part in the record lane."""

    async def plan(self, connection: Connection, events: Sequence[Event]) -> EndSilences:
        # An end by a command or an apply was written with its event.
        ended = [event for event in events if event.origin == "scheduled"]
        ids = [silence.id for event in ended if (silence := ended_silence(event)) is not None]
        if not ids:
            return EndSilences([])
        return EndSilences(await fetch_dicts(connection, "rules.suppression/read_ended", {"ids": ids}))


class EndSilences(Writes):
    def __init__(self, ended: Sequence[Row]) -> None:
        self._ended = ended
        self._following: list[NewSilence] = []
        self._events: list[NewEvent] = []

    async def write_timers(self, connection: Connection) -> None:
        if self._ended:
            now = await database_now(connection)
            candidates = (following_silence(row, now) for row in self._ended)
            self._following = [silence for silence in candidates if silence is not None]
            await arm_ends(connection, self._following)

    async def write_entities(self, connection: Connection) -> None:
        if not self._ended:
            return
        now = await database_now(connection)
        ids = [row["id"] for row in self._ended]
        if len(await end_silences(connection, ids, now)) != len(ids):
            raise Conflict("a silence was ended in another transaction")
        await insert_silences(connection, self._following, via=_VIA, now=now)
        self._events = [
            silence_added_event(silence.facts, now, who=silence.created_by, via=_VIA, origin="derived")
            for silence in self._following
        ]

    def records_to_append(self) -> NewRecords:
        return NewRecords(events=self._events)
