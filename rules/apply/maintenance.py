"""Changes the windows of maintenances as their documents change, and previews them.

Guarantee: after an apply, each enabled maintenance has its next window, or the one in progress, as a
silence. A document that is removed, disabled or changed ends its window at once, and a changed one
begins another. A document without a change keeps its window. Everything is written in the transaction
of the apply: first the timers, then the silences. The events come after `rules-applied`.

A document whose recurrence did not change keeps its anchor, as a schedule does.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from rules.apply.plan import ApplyPlan, DocumentChange
from rules.documents.load import recurrence_arguments
from rules.lanes.batch import Writes
from rules.suppression.silence_store import (
    NewSilence,
    Row,
    arm_ends,
    disarm_ends,
    end_silences,
    insert_silences,
    list_windows,
)
from rules.suppression.windows import SilenceWindow, counts_from_creation, next_window, next_windows
from schemas.documents import MaintenanceDocument
from schemas.wire.silence_events import SilenceFacts, silence_added_event, silence_ended_event
from timers.recurrence import Recurrence
from timers.schedule_spec import ScheduleSpec
from timers.schedule_times import recurrence_of_spec
from tocsin.core.audit import Actor
from tocsin.core.db import Connection
from tocsin.core.records import NewEvent, NewRecords

_SHOWN_WINDOWS = 3


class NextWindows(NamedTuple):
    tz: str
    windows: tuple[SilenceWindow, ...]


class ChangeWindows(Writes):
    """Ends and begins windows in the transaction of an apply."""

    def __init__(self, ended: Sequence[Row], begun: Sequence[NewSilence], actor: Actor) -> None:
        self._ended = ended
        self._begun = begun
        self._actor = actor
        self._events: list[NewEvent] = []

    @classmethod
    async def read(cls, connection: Connection, plan: ApplyPlan, actor: Actor) -> ChangeWindows:
        changes = plan.of_kind("maintenance")
        windows = {row["source"]: row for row in await list_windows(connection, _sources(changes))}
        new = (_window_of(change, windows.get(_source(change.name)), actor) for change in changes)
        return cls(list(windows.values()), [silence for silence in new if silence is not None], actor)

    async def write_timers(self, connection: Connection) -> None:
        await disarm_ends(connection, [row["id"] for row in self._ended])
        await arm_ends(connection, self._begun)

    async def write_entities(self, connection: Connection) -> None:
        actor = self._actor
        ended = await end_silences(connection, [row["id"] for row in self._ended], actor.now)
        await insert_silences(connection, self._begun, via=actor.via, now=actor.now)
        self._events = [
            silence_ended_event(_facts(row), actor.now, who=actor.who, via=actor.via) for row in ended
        ]
        self._events += [
            silence_added_event(silence.facts, actor.now, who=actor.who, via=actor.via)
            for silence in self._begun
        ]

    def records_to_append(self) -> NewRecords:
        return NewRecords(self._events)


async def preview_windows(connection: Connection, change: DocumentChange, now: datetime) -> NextWindows:
    """The next windows after the change."""
    document = change.model
    if not isinstance(document, MaintenanceDocument) or not document.enabled:
        return NextWindows("UTC", ())
    windows = await list_windows(connection, [_source(change.name)])
    recurrence, after = _recurrence(document, windows[0] if windows else None, now)
    windows_after = next_windows(recurrence, document.duration, now, _SHOWN_WINDOWS, after)
    return NextWindows(document.tz, tuple(windows_after))


def _window_of(change: DocumentChange, before: Row | None, actor: Actor) -> NewSilence | None:
    document = change.model
    if not isinstance(document, MaintenanceDocument) or not document.enabled:
        return None
    recurrence, after = _recurrence(document, before, actor.now)
    window = next_window(recurrence, document.duration, actor.now, after)
    if window is None:
        return None
    return NewSilence(
        document.where,
        *window,
        reason=document.reason,
        created_by=actor.who,
        source=_source(document.name),
        recurrence=recurrence.spec,
    )


def _recurrence(
    document: MaintenanceDocument, window: Row | None, now: datetime
) -> tuple[Recurrence, datetime | None]:
    """The recurrence, and the instant behind which its windows begin, if it is counted from now."""
    arguments: dict[str, Any] = recurrence_arguments(document)
    recurrence = recurrence_of_spec(ScheduleSpec(document.name, arguments), window, now)
    is_kept = window is not None and window["recurrence"] == recurrence.spec
    return recurrence, now if counts_from_creation(document) and not is_kept else None


def _sources(changes: Sequence[DocumentChange]) -> list[str]:
    return sorted(_source(change.name) for change in changes)


def _source(name: str) -> str:
    return f"maintenance:{name}"


def _facts(row: Row) -> SilenceFacts:
    return SilenceFacts(*(row[name] for name in SilenceFacts._fields))
