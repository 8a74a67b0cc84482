"""Simulates silences, maintenance windows and inhibits in memory, for rule tests and backtests.

Guarantee: `rules.suppression` decides, as in the live system: which alarm is suppressed
(`suppressed_by`), and when the windows of a maintenance are (`next_window`). Silences are kept in
memory instead of Postgres, and their ends are calls of the scheduler instead of schedules. The
events are those of the live commands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid5

from rules.dispatch.suppression_ends import REMIND, changes_inhibits
from rules.documents.load.recurrences import recurrence_of
from rules.language.cel import compile_matcher
from rules.replay.runs import Runs
from rules.replay.scheduler import SILENCE, Scheduler
from rules.suppression import Inhibit, Silence, Suppression, matched_alarm, suppressed_by
from rules.suppression.suppression import Inhibition
from rules.suppression.windows import counts_from_creation, next_window
from schemas.documents import MaintenanceDocument
from schemas.wire.alarm_events import event_type
from schemas.wire.silence_events import (
    SILENCE_ENDED,
    SILENCE_OWNER,
    SilenceFacts,
    check_silence,
    silence_added_event,
    silence_ended_event,
    silence_of_payload,
    silence_payload,
)
from timers.recurrence import Recurrence
from tocsin.core.errors import InvalidInput
from tocsin.core.records import NewEvent

_SILENCES = UUID("0d7c2c1e-3f0b-5c0a-9d6c-3b8f5a1e7c44")
_VIA = "test"
Facts = Mapping[str, Any]


class SimulatedSilences:
    """The silences of a simulation, and what they and the inhibits suppress now."""

    def __init__(
        self,
        inhibits: tuple[Inhibit, ...],
        scheduler: Scheduler,
        now: Callable[[], datetime],
        append: Callable[[NewEvent], None],
        open_alarms: Callable[[], Iterable[Facts]],
    ) -> None:
        """`open_alarms` returns the facts about the open alarms."""
        self.inhibits = inhibits
        self._scheduler = scheduler
        self._now = now
        self._append = append
        self._open_alarms = open_alarms
        self._active: dict[UUID, Silence] = {}
        self._count = 0
        self._maintenances: dict[str, MaintenanceDocument] = {}

    def change_maintenances(
        self, documents: Mapping[str, MaintenanceDocument], now: datetime, who: str = ""
    ) -> None:
        """Begin the windows of documents that are new or changed now, and end those of the others."""
        before, self._maintenances = self._maintenances, dict(documents)
        changed = {name for name in {*before, *documents} if before.get(name) != documents.get(name)}
        self._expire(
            (silence for silence in self._active.values() if _maintenance_of(silence) in changed), who
        )
        for name, document in documents.items():
            if name in changed and document.enabled:
                recurrence = recurrence_of(document, anchor=now, hash_id=name)
                after = now if counts_from_creation(document) else None
                self._begin_window(document, recurrence, after)

    def put(self, silence: Silence) -> None:
        """Put a silence that was recorded: its events are in the recording."""
        self._active[silence.id] = silence

    def add(self, where: str, lasts: timedelta, reason: str, who: str) -> None:
        compile_matcher(where)
        now = self._now()
        check_silence(now, now, now + lasts, reason)
        self._begin(Silence(self._next_id(), where, now, now + lasts, reason, who))

    def expire(self, where: str, who: str) -> None:
        """End the silences that were added with this matcher."""
        expired = [silence for silence in self._active.values() if silence.matcher == where]
        if not expired:
            raise InvalidInput(
                f"no silence with the matcher {where!r} is active at {self._now().isoformat()}"
            )
        self._expire(expired, who)

    def _expire(self, silences: Iterable[Silence], who: str) -> None:
        for silence in list(silences):
            del self._active[silence.id]
            self._append(silence_ended_event(_facts(silence), self._now(), who=who, via=_VIA))

    def suppressions(self, alarms: Sequence[Facts]) -> dict[str, Suppression]:
        """The suppressions of those of the alarms that are not resolved, by their ids."""
        others = [matched_alarm(alarm) for alarm in self._open_alarms()] if self.inhibits else []
        inhibition = Inhibition(self.inhibits, others)
        found: dict[str, Suppression] = {}
        for alarm in alarms:
            if alarm["state"] != "resolved":
                matched = matched_alarm(alarm)
                silences = self._active.values()
                suppression = suppressed_by(matched, silences, self.inhibits, inhibition, self._now())
                if suppression is not None:
                    found[alarm["id"]] = suppression
        return found

    def release(self, event: Facts, runs: Runs) -> None:
        """Wake what an event releases, as `rules.dispatch` does in the record lane."""
        if event["type"] == SILENCE_ENDED and event["owner"] == SILENCE_OWNER:
            silence = silence_of_payload(event["payload"])
            if silence.starts_at <= event["ts"]:
                runs.wake(self.muted_by(silence), event, REMIND)
        elif changes_inhibits(event["type"], event["origin"], event["payload"]):
            runs.wake_all_held(event, REMIND)
        elif event["type"] == event_type("resolved") and event.get("alarm_id") is not None:
            runs.wake_held(f"alarm:{event['alarm_id']}", event, REMIND)

    def muted_by(self, silence: SilenceFacts) -> set[UUID]:
        """The open alarms that an ended silence has matched."""
        matcher = compile_matcher(silence.matcher)
        alarms = (matched_alarm(alarm) for alarm in self._open_alarms())
        return {alarm.id for alarm in alarms if matcher.matches(alarm.fields)}

    def _begin(self, silence: Silence, *, origin: Any = "caused") -> None:
        self._active[silence.id] = silence
        event = silence_added_event(
            _facts(silence), self._now(), who=silence.created_by, via=_VIA, origin=origin
        )
        self._append(event)
        self._scheduler.add(silence.ends_at, SILENCE, partial(self._end, silence))

    def _end(self, silence: Silence) -> None:
        if self._active.pop(silence.id, None) is not None:
            self._append(_ended_by_time(silence))

    def _begin_window(
        self, document: MaintenanceDocument, recurrence: Recurrence, after: datetime | None
    ) -> None:
        if self._maintenances.get(document.name) is not document:
            return
        window = next_window(recurrence, document.duration, self._now(), after)
        if window is None:
            return
        source = f"maintenance:{document.name}"
        silence = Silence(self._next_id(), document.where, *window, document.reason, _VIA, source)
        self._begin(silence, origin="derived")
        following = partial(self._begin_window, document, recurrence, window.starts_at)
        # Added behind the end of this window, so it runs after it.
        self._scheduler.add(window.ends_at, SILENCE, following)

    def _next_id(self) -> UUID:
        self._count += 1
        return uuid5(_SILENCES, str(self._count))


def _maintenance_of(silence: Silence) -> str | None:
    kind, _, name = silence.source.partition(":")
    return name if kind == "maintenance" else None


def _facts(silence: Silence) -> SilenceFacts:
    return SilenceFacts(
        silence.id,
        silence.matcher,
        silence.starts_at,
        silence.ends_at,
        silence.reason,
        silence.created_by,
        silence.source,
    )


def _ended_by_time(silence: Silence) -> NewEvent:
    """The event of the schedule that ends a silence."""
    facts = _facts(silence)
    return NewEvent(
        silence.ends_at,
        "scheduled",
        SILENCE_ENDED,
        silence_payload(facts),
        schedule=str(silence.id),
        owner=SILENCE_OWNER,
        id=uuid5(silence.id, "scheduled"),
    )
