"""Fires the schedules of a rule test, each occurrence at its instant, and follows changes of their documents."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from rules.documents.load.recurrences import recurrence_arguments, recurrence_of
from rules.replay.scheduler import INPUT, Scheduler
from schemas.documents import ScheduleDocument
from timers.identity import spread_of
from timers.recurrence import Recurrence
from tocsin.core.records import NewEvent

_FIRES = uuid.UUID("9f0d0c58-4d5e-5a53-8b4e-7c2e7f1b6a90")


@dataclass(frozen=True, eq=False)
class ArmedSchedule:
    document: ScheduleDocument
    recurrence: Recurrence


class SimulatedSchedules:
    def __init__(self, scheduler: Scheduler, append: Callable[[NewEvent], None]) -> None:
        self._scheduler = scheduler
        self._append = append
        self._armed: dict[tuple[str, str], ArmedSchedule] = {}
        """By owner and name."""

    def change(self, documents: Iterable[ScheduleDocument], now: datetime) -> None:
        """Fire the schedules of these documents from now on.

        A schedule whose document did not change goes on. One with the same recurrence keeps its
        anchor, as `timers.schedules.put_schedule` does.
        """
        enabled = {(document.owner, document.name): document for document in documents if document.enabled}
        for key in self._armed.keys() - enabled.keys():
            del self._armed[key]
        for key, document in enabled.items():
            before = self._armed.get(key)
            if before is None or before.document != document:
                armed = ArmedSchedule(document, _recurrence(document, before, now))
                self._armed[key] = armed
                self._arm(armed, now)

    def recurrence(self, name: str) -> Recurrence | None:
        named = (armed.recurrence for (_, schedule), armed in self._armed.items() if schedule == name)
        return next(named, None)

    def retry_of(self, owner: str, name: str) -> dict[str, Any] | None:
        """The retry policy that a schedule gives its action."""
        armed = self._armed.get((owner, name))
        retry = None if armed is None else armed.document.retry
        return None if retry is None else retry.model_dump(mode="json")

    def _arm(self, armed: ArmedSchedule, after: datetime) -> None:
        document, occurrence = armed.document, armed.recurrence.next_after(after)
        if occurrence is not None:
            spread = spread_of(document.owner, document.name, document.spread or timedelta(0))
            self._scheduler.add(occurrence + spread, INPUT, partial(self._fire, armed, occurrence))

    def _fire(self, armed: ArmedSchedule, at: datetime) -> None:
        document = armed.document
        if self._armed.get((document.owner, document.name)) is not armed:
            return
        self._append(
            NewEvent(
                at,
                "scheduled",
                document.type,
                document.payload,
                schedule=document.name,
                action=document.action or "",
                owner=document.owner,
                id=uuid.uuid5(_FIRES, f"{document.name}/{at.isoformat()}"),
            )
        )
        self._arm(armed, at)


def _recurrence(document: ScheduleDocument, before: ArmedSchedule | None, now: datetime) -> Recurrence:
    if before is not None and recurrence_arguments(before.document) == recurrence_arguments(document):
        return before.recurrence
    return recurrence_of(document, anchor=now, hash_id=document.name)
