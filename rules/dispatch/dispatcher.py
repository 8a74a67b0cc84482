"""The dispatcher: starts runs for the events of a batch, in the record lane.

Guarantee I7 (docs/guarantees.md): an action starts at most once per (action_rule, event). The
record lane delivers each event once, in order, and its position moves in the transaction that
starts the runs; the table holds the pair unique as well. `policies` applies rate limits, groups and
overlaps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog
from psycopg.types.json import Jsonb

from rules.actions.cancel import CancelRuns
from rules.dispatch.alarm_transitions import WakeNotifications, Waking
from rules.dispatch.matcher import ActionMatcher, Match
from rules.dispatch.policies import Policies, Start
from rules.dispatch.schedule_retries import with_retries
from rules.documents.rule_book import RuleBook
from rules.lanes.batch import Writes
from rules.lanes.lineage_store import read_lineages_of
from schemas.wire.event import Event
from tocsin.core.db import Connection, fetch_all, statement
from tocsin.core.errors import InvalidInput
from tocsin.core.records import NewRecords, NewStep

_log = structlog.get_logger()


class Dispatcher:
    """Takes part in the record lane."""

    def __init__(self) -> None:
        self._book = RuleBook(ActionMatcher, *ActionMatcher.DOCUMENT_TYPES)

    async def plan(self, connection: Connection, events: Sequence[Event]) -> StartRuns:
        if events:
            await self._book.refresh(connection, min(event.seq for event in events))
        matches = [(event, match) for event in events for match in self._match(event)]
        matches = await with_retries(connection, matches)
        lineages = await read_lineages_of(connection, [event for event, _ in matches])
        policies = await Policies.read(connection, matches)
        starts = [policies.start(event, match, lineages.get(event.id, ())) for event, match in matches]
        return StartRuns([start for start in starts if start is not None], policies)

    def _match(self, event: Event) -> list[Match]:
        try:
            return self._book.at(event.seq).match(event.facts())
        except InvalidInput as error:
            _log.error("event cannot be evaluated", seq=event.seq, error=error)
            return []


class StartRuns(Writes):
    """Writes the rows of new runs, and the first step of each: as due, or as skipped with the
    reason."""

    def __init__(self, starts: Sequence[Start], policies: Policies) -> None:
        self._starts = starts
        self._policies = policies
        replaced = {id: f"replaced by {start.id}" for start in starts for id in start.admission.replaces}
        self._cancelling = CancelRuns(replaced)
        started = {start.id for start in starts if start.admission.joins is None}
        self._waking = WakeNotifications(
            [
                Waking(start.id, start.match.rule, start.event)
                for start in starts
                if start.match.notify is not None and start.admission.joins not in (None, *started)
            ]
        )
        # A run that this batch both starts and replaces is written as skipped.
        self._replaced = replaced.keys()
        self.steps: list[NewStep] = []

    async def write_timers(self, connection: Connection) -> None:
        await self._cancelling.write_timers(connection)
        timers = [timer for start in self._starts if (timer := _group_timer(start)) is not None]
        if timers:
            names = ("refs", "keys", "at", "payloads")
            columns = {
                name: list(values) for name, values in zip(names, zip(*timers, strict=True), strict=True)
            }
            await connection.execute(statement("rules.dispatch/arm_groups"), columns)

    def actions_to_lock(self) -> Iterable[UUID]:
        return [run.id for run in self._policies.runs]

    async def write_entities(self, connection: Connection) -> None:
        if not self._starts:
            return
        await self._policies.verify(connection)
        await self._cancelling.write_entities(connection)
        rows = await fetch_all(connection, "rules.dispatch/start_actions", self._columns())
        self.steps = [
            NewStep(
                action_id=id,
                name=name,
                owner=owner,
                step=0,
                attempt=1,
                state="due" if state == "running" else "skipped",
                correlation_id=correlation_id,
                source_event_id=event_id,
                result={} if reason is None else {"reason": reason},
            )
            for id, name, owner, event_id, correlation_id, state, reason, is_due in rows
            if is_due or state == "skipped"
        ]
        await self._waking.write_entities(connection)
        await self._policies.put_starts(connection)
        for step in self.steps:
            if step.state == "skipped":
                _log.warning("action skipped", action=step.name, id=step.action_id, **step.result)

    def _columns(self) -> dict[str, list[Any]]:
        starts = self._starts
        return {
            "ids": [start.id for start in starts],
            "names": [start.match.action for start in starts],
            "rules": [start.match.rule for start in starts],
            "groups": [start.group for start in starts],
            "states": [
                "skipped" if start.id in self._replaced else start.admission.state for start in starts
            ],
            "joins": [start.admission.joins is not None for start in starts],
            "reasons": [self._reason(start) for start in starts],
            "event_ids": [start.event.id for start in starts],
            "event_seqs": [start.event.seq for start in starts],
            "documents": [Jsonb(start.match.document) for start in starts],
            "owners": [start.event.owner for start in starts],
            "correlations": [start.event.correlationid for start in starts],
            "alarms": [start.event.alarmid for start in starts],
            "ends_with": [Jsonb(list(start.match.ends_with)) for start in starts],
            "lineages": [Jsonb(list(start.lineage)) for start in starts],
            "actives": [Jsonb({} if start.id in self._replaced else _first_entry(start)) for start in starts],
        }

    def _reason(self, start: Start) -> str | None:
        return "overlap: replaced before it began" if start.id in self._replaced else start.admission.reason

    def records_to_append(self) -> NewRecords:
        return NewRecords.joined(
            [
                self._cancelling.records_to_append(),
                NewRecords(steps=self.steps),
                self._waking.records_to_append(),
            ]
        )


def _first_entry(start: Start) -> dict[str, Any]:
    """The active steps of a new run. A group of notifications waits first."""
    if start.admission.state != "running":
        return {}
    if start.match.notify is None:
        return {"0": {"attempt": 1, "state": "due"}}
    began_at = {"began_at": start.event.recordedat.isoformat()}
    if start.match.notify.group_wait is None:
        return {"0": {"attempt": 1, "state": "due", **began_at}}
    return {"0": {"attempt": 1, "state": "waiting", "rest": "gathering", **began_at}}


def _group_timer(start: Start) -> tuple[str, str, datetime, Jsonb] | None:
    """The timer after which a new run begins; None if it begins at once."""
    notify, admission = start.match.notify, start.admission
    if admission.joins is not None:
        return None
    if admission.state == "gathering" and admission.begins_at is not None:
        policy = start.match.policy
        payload = {"queue": True} if policy is not None and policy.overlap == "queue" else {}
        return str(start.id), "group", admission.begins_at, Jsonb(payload)
    if notify is not None and notify.group_wait is not None and admission.state == "running":
        at = start.event.recordedat + notify.group_wait
        return str(start.id), "0", at, Jsonb({"step": "0", "attempt": 1})
    return None
