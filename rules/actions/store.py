"""An action as it stands, and what its steps may know: the events, the alarm, the answers.

Guarantee: everything is read without a lock and as of now: an alarm has the state of this moment, not the one that
started the action. `facts` have the names that conditions and templates use.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any
from uuid import UUID

from psycopg.rows import dict_row

from rules.runbook import Node, Program, compile_runbook
from schemas.documents.action import ActionDocument
from schemas.fields import ALARM_FIELDS
from schemas.wire.event_facts import event_facts
from tocsin.core.db import Connection, statement
from tocsin.core.errors import InvalidInput

MAX_EVENTS = 100


@dataclass(frozen=True)
class Action:
    id: UUID
    name: str
    rule: str
    group_key: str
    document: Mapping[str, Any]
    state: str
    active: Mapping[str, Mapping[str, Any]]
    answers: Mapping[str, Any]
    owner: str
    alarm_id: UUID | None
    event_id: UUID
    event_seq: int
    correlation_id: UUID
    lineage: tuple[str, ...]
    version: int
    started_at: datetime
    at: datetime
    """When this was read, by the database's clock."""

    @cached_property
    def program(self) -> Program:
        """Raises what pydantic or the compiler raise, for a document that this version cannot read."""
        return _program(json.dumps(self.document, sort_keys=True))

    @property
    def next_lineage(self) -> tuple[str, ...]:
        """The lineage of the events and messages that this run causes."""
        return (*self.lineage, self.rule)

    def node(self, step: int) -> Node:
        if step >= len(self.program.nodes):
            raise InvalidInput(f"action {self.name!r} has no step {step}")
        return self.program.nodes[step]

    def entry(self, step: int) -> Mapping[str, Any]:
        return self.active.get(str(step), {})

    def is_due(self, step: int, attempt: int) -> bool:
        """Whether this attempt of the step is still to be done."""
        entry = self.entry(step)
        return self.state == "running" and entry.get("state") == "due" and entry.get("attempt") == attempt


@dataclass(frozen=True)
class Situation:
    """What a step may know."""

    event: Mapping[str, Any]
    """The first of `events`: the one that started the action."""
    events: tuple[Mapping[str, Any], ...]
    alarm: Mapping[str, Any]


@lru_cache(maxsize=1_024)
def _program(text: str) -> Program:
    return compile_runbook(ActionDocument.model_validate_json(text))


async def read_action(connection: Connection, id: UUID) -> Action | None:
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement("rules.actions/read_action"), {"id": id})
        row = await cursor.fetchone()
    return None if row is None else Action(**{**row, "lineage": tuple(row["lineage"])})


async def read_situation(connection: Connection, action: Action) -> Situation:
    """`InvalidInput` if the log no longer has the event."""
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(
            statement("rules.actions/read_action_events"), {"id": action.id, "limit": MAX_EVENTS}
        )
        events = tuple(event_facts(row) for row in await cursor.fetchall())
        alarm: dict[str, Any] | None = None
        if action.alarm_id is not None:
            await cursor.execute(statement("rules.actions/read_alarm"), {"id": action.alarm_id})
            alarm = await cursor.fetchone()
    if not events:
        raise InvalidInput("the event that started this action is no longer in the log")
    return Situation(events[0], events, _alarm_facts(alarm))


async def read_event(connection: Connection, seq: int) -> dict[str, Any] | None:
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement("rules.actions/read_event"), {"seq": seq})
        row = await cursor.fetchone()
    return None if row is None else event_facts(row)


def _alarm_facts(row: Mapping[str, Any] | None) -> dict[str, Any]:
    if row is None:
        return {**dict.fromkeys(ALARM_FIELDS, ""), "severity": 0, "payload": {}}
    return {**row, "id": str(row["id"])}
