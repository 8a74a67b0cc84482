"""The heartbeats in force with their states, for commands, the doctor, metrics and the API. Reads only."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

from rules.documents.rule_book import applied_documents
from rules.engine import RuleState
from schemas.documents import HeartbeatDocument
from schemas.values.rule_ref import RuleRef
from tocsin.core.db import Connection, fetch_all

HeartbeatStatus = Literal["ok", "running", "late", "failed", "overrun", "held", "new", "disabled"]


class HeartbeatRow(NamedTuple):
    """One heartbeat and owner."""

    name: str
    owner: str
    status: HeartbeatStatus
    """`held`: its deadline has passed, and the worker has not read so far. `new`: it has no check-in yet."""
    last_at: datetime | None
    last_status: str
    last_success_at: datetime | None
    last_duration_s: float | None
    expected_at: datetime | None
    due_at: datetime | None
    late_by: timedelta | None
    """How long the check-in, or the end of a run, has been missing."""
    missed: int
    running: int
    excused_at: datetime | None
    """The end of the arrival gap that replaced an expected time, if no check-in came since."""
    alarm_id: str | None
    tz: str
    title: str


async def list_heartbeats(
    connection: Connection, *, name: str | None = None, owner: str | None = None
) -> tuple[datetime, list[HeartbeatRow]]:
    """The time of the database, and the heartbeats by name and owner."""
    rows = await fetch_all(connection, "rules.alarms/list_heartbeat_states")
    states = {(rule, owner): RuleState.from_json(state) for rule, owner, state, _ in rows}
    ((now,),) = await fetch_all(connection, "rules.alarms/read_instant")
    found = []
    for document in await applied_documents(connection, HeartbeatDocument):
        assert isinstance(document, HeartbeatDocument)
        if name is not None and document.name != name:
            continue
        for expected in document.expected_owners:
            if owner is None or expected == owner:
                key = (str(RuleRef("heartbeat", document.name)), expected)
                found.append(_row(document, expected, states.get(key), now))
    return now, sorted(found)


async def list_unknown_heartbeats(connection: Connection) -> list[tuple[str, str, datetime]]:
    """(name, owner, last check-in) of check-ins that no document expects."""
    _, known = await list_heartbeats(connection)
    expected = {(row.name, row.owner) for row in known}
    rows = await fetch_all(connection, "rules.alarms/list_checked_in")
    return [(name, owner, at) for name, owner, at in rows if (name, owner) not in expected]


def _row(document: HeartbeatDocument, owner: str, state: RuleState | None, now: datetime) -> HeartbeatRow:
    beat = None if state is None else state.heartbeat
    if state is None or beat is None:
        status: HeartbeatStatus = "new" if document.enabled else "disabled"
        nothing = (None, "", None, None, None, None, None, 0, 0, None, None)
        return HeartbeatRow(document.name, owner, status, *nothing, document.tz, document.title)
    alarm = state.alarm if state.phase == "open" else None
    since = None if alarm is None or alarm.cause == "failed" else alarm.since
    return HeartbeatRow(
        name=document.name,
        owner=owner,
        status=_status(state, now),
        last_at=beat.last_at,
        last_status=beat.last_status,
        last_success_at=beat.last_success_at,
        last_duration_s=beat.last_duration_s,
        expected_at=beat.expected_at,
        due_at=beat.due_at,
        late_by=None if since is None else now - since,
        missed=beat.missed,
        running=len(beat.runs),
        excused_at=beat.gap_ended_at,
        alarm_id=None if alarm is None else str(alarm.id),
        tz=document.tz,
        title=document.title,
    )


def _status(state: RuleState, now: datetime) -> HeartbeatStatus:
    beat = state.heartbeat
    assert beat is not None
    if state.phase == "open" and state.alarm is not None:
        cause: Any = state.alarm.cause
        status: HeartbeatStatus = cause
        return status
    due_at = beat.next_due_at
    if due_at is not None and due_at < now - timedelta(seconds=5):
        return "held"
    if beat.runs:
        return "running"
    return "new" if beat.last_at is None else "ok"
