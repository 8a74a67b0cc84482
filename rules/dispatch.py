"""Dispatch: events start the actions of the rules that match them.

Guarantee (I7): an action starts at most once per (action_rule, event). The record lane brings each event once, in
order, and its position moves in the transaction that starts the actions; that the pair is unique in the table as well
holds whatever else may happen.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from psycopg.types.json import Jsonb

from clock.record_log import NewStep, Records
from rules.actions.lineage import read_lineages, suppression
from rules.current import RuleBook
from rules.judging import Judge, Match
from rules.lanes.phases import Writes
from schemas.event import Event
from tocsin.core.db import Connection, statement
from tocsin.core.errors import InvalidInput

_log = structlog.get_logger()
_ACTIONS = uuid.UUID("0b7c6ce5-0f0b-5d0e-8b0a-6f2d4f5f9a21")


@dataclass(frozen=True)
class Start:
    event: Event
    match: Match
    lineage: tuple[str, ...] = ()
    """The rules that led to the event."""

    @property
    def id(self) -> uuid.UUID:
        return uuid.uuid5(_ACTIONS, f"{self.match.rule}/{self.event.id}")

    @property
    def suppressed(self) -> str | None:
        return suppression(self.match.rule, self.lineage)


class Dispatcher:
    def __init__(self) -> None:
        self._book = RuleBook(Judge, *Judge.KINDS)

    async def plan(self, connection: Connection, events: Sequence[Event]) -> StartActions:
        if events:
            await self._book.refresh(connection, min(event.seq for event in events))
        matches = [(event, match) for event in events for match in self._matches(event)]
        lineages = await _lineages(connection, [event for event, _ in matches])
        return StartActions([Start(event, match, lineages.get(event.id, ())) for event, match in matches])

    def _matches(self, event: Event) -> list[Match]:
        try:
            return self._book.at(event.seq).judge(event.facts())
        except InvalidInput as error:
            _log.error("event cannot be judged", seq=event.seq, error=error)
            return []


async def _lineages(connection: Connection, events: Sequence[Event]) -> Mapping[uuid.UUID, tuple[str, ...]]:
    """Only what an action may have caused has one."""
    ids = {event.id for event in events if event.origin in ("caught", "caused")}
    return await read_lineages(connection, ids) if ids else {}


class StartActions(Writes):
    """Action rows, and the first step of each that is new: as due, or as skipped where a rule would start itself."""

    def __init__(self, starts: Sequence[Start]) -> None:
        self._starts = starts
        self.steps: list[NewStep] = []

    async def entities(self, connection: Connection) -> None:
        if not self._starts:
            return
        columns: dict[str, list[Any]] = {
            "ids": [start.id for start in self._starts],
            "names": [start.match.action for start in self._starts],
            "rules": [start.match.rule for start in self._starts],
            "event_ids": [start.event.id for start in self._starts],
            "event_seqs": [start.event.seq for start in self._starts],
            "documents": [Jsonb(start.match.document) for start in self._starts],
            "owners": [start.event.owner for start in self._starts],
            "correlations": [start.event.correlationid for start in self._starts],
            "alarms": [start.event.alarmid for start in self._starts],
            "lineages": [Jsonb(list(start.lineage)) for start in self._starts],
            "suppressed": [start.suppressed for start in self._starts],
        }
        rows = await (await connection.execute(statement("rules/start_actions"), columns)).fetchall()
        self.steps = [
            NewStep(
                action_id=id,
                name=name,
                owner=owner,
                step=0,
                attempt=1,
                state="due" if suppressed is None else "skipped",
                correlation_id=correlation_id,
                source_event_id=event_id,
                result={} if suppressed is None else {"reason": suppressed},
            )
            for id, name, owner, event_id, correlation_id, suppressed in rows
        ]
        for step in self.steps:
            if step.state == "skipped":
                _log.warning("action suppressed", action=step.name, id=step.action_id, **step.result)

    def records(self) -> Records:
        return Records(steps=self.steps)
