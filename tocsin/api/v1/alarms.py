"""`/v1/alarms`: list, read, and act on one alarm.

An alarm of an owner that the caller may not view is 404. One that it may view and not change is 403.
"""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from rules.alarms.explain import explain_alarm
from rules.alarms.operator import acknowledge, snooze
from rules.alarms.queries import STATES, UNRESOLVED
from rules.alarms.resolve import resolve
from rules.suppression import matched_alarm
from rules.suppression.reader import Suppressions
from schemas.values.severities import level, level_name
from timers.working_set import database_now
from tocsin.api.access.permission import Access, may
from tocsin.api.pages import BY_ID, Keyset, Page, Paged, big_integer, instant
from tocsin.api.v1.inputs import IdBeginning, Note, OptionalText, end_of, id_bounds
from tocsin.core.db import Connection, fetch_dict, fetch_dicts
from tocsin.core.errors import NotFound
from tocsin.policy import Operation

router = APIRouter(tags=["alarms"])
Viewing = Annotated[Access, may(Operation.VIEW_ALARMS)]
Row = dict[str, Any]
_BY_AGE = Keyset({"since": instant, "id": BY_ID})
_BY_SEVERITY = Keyset({"severity": big_integer, "since": instant, "id": BY_ID})
_suppressions = Suppressions()


class AlarmView(BaseModel):
    id: uuid.UUID
    rule: str = Field(description="Name of the event_rule.")
    owner: str
    instance: str = Field(
        description="Series or other instance of the rule; empty if there is one per owner."
    )
    state: Literal["pending", "open", "resolved"]
    severity: str
    level: int = Field(description="Number of the severity; a higher one is more severe.")
    since: datetime = Field(description="When the condition began to hold.")
    opened_at: datetime | None
    resolved_at: datetime | None
    resolved_reason: str | None
    acknowledged_at: datetime | None
    acknowledged_by: str | None
    acknowledged_note: str | None
    snoozed_until: datetime | None
    snoozed_by: str | None
    suppressed_by: str | None = Field(
        description="`silence:ID`, `alarm:ID` or `inhibit`; null if it notifies."
    )
    suppressed_because: str | None = Field(
        default=None, description="The reason of the silence, or the alarm that inhibits."
    )
    source_event_id: uuid.UUID | None = None
    correlation_id: uuid.UUID = Field(description="Shared by all records that it leads to.")
    payload: dict[str, Any] = Field(description="Title, message, value and labels, as the rule made them.")


class AlarmChange(BaseModel):
    """The alarm after a change. `seq` is the event of the change; null if nothing changed."""

    changed: bool
    seq: int | None
    alarm: AlarmView


class AlarmExplanationView(BaseModel):
    sentence: str
    history: list[str]
    facts: dict[str, Any] = Field(description="What the sentence follows from.")


class NoteRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")
    note: Note = ""


class SnoozeRequest(BaseModel):
    """`for` or `until`; neither ends the snooze."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)
    for_: str | None = Field(default=None, alias="for", max_length=40, examples=["2h"])
    until: AwareDatetime | None = None


@router.get("/alarms", summary="List alarms, the newest or the most severe first")
async def list_alarms(
    access: Viewing,
    page: Paged,
    state: Annotated[
        Literal["pending", "open", "resolved", "active", "all"],
        Query(description="`active`: pending or open."),
    ] = "active",
    rule: OptionalText = None,
    owner: OptionalText = None,
    severity: Annotated[
        str | None, Query(max_length=40, description="Only of this severity and above.")
    ] = None,
    id: IdBeginning = None,
    sort: Annotated[
        Literal["newest", "severity"], Query(description="`severity`: the most severe first.")
    ] = "newest",
) -> Page[AlarmView]:
    order = _BY_SEVERITY if sort == "severity" else _BY_AGE
    name = "list_alarms_by_severity" if sort == "severity" else "list_alarms"
    states = {"active": UNRESOLVED, "all": STATES}.get(state, (state,))
    filters = {
        "owners": access.owners,
        "states": list(states),
        "rule": rule,
        "owner": owner,
        "severity": 0 if severity is None else level(severity),
        **id_bounds(id, "alarm", "tocsin alarms --state all"),
        **order.after(page),
    }
    async with access.session() as connection:
        rows = await fetch_dicts(connection, f"tocsin.api.v1/{name}", filters)
        await add_suppressions(connection, access, rows)
    return order.page(page, rows, alarm_view)


@router.get("/alarms/{id}", summary="Read an alarm")
async def read_alarm(access: Viewing, id: uuid.UUID) -> AlarmView:
    async with access.session() as connection:
        return alarm_view(await find_alarm(connection, access, id))


@router.get("/alarms/{id}/explanation", summary="Why the alarm has its state")
async def explain_one_alarm(access: Viewing, id: uuid.UUID) -> AlarmExplanationView:
    async with access.session() as connection:
        row = await find_alarm(connection, access, id)
        sees_all = "*" in access.owners_of(Operation.VIEW_ALARMS)
        now = await database_now(connection)
        explained = await explain_alarm(connection, row, now, names_others=sees_all)
    return AlarmExplanationView(
        sentence=explained.sentence, history=list(explained.history), facts=explained.facts
    )


@router.post("/alarms/{id}:ack", summary="Acknowledge an alarm")
async def ack_alarm(
    access: Annotated[Access, may(Operation.ACKNOWLEDGE_ALARM)], id: uuid.UUID, body: NoteRequest
) -> AlarmChange:
    async with access.session() as connection:
        row = await find_alarm(connection, access, id)
        access.require(row["owner"], "alarm of owner")
        acted = await acknowledge(connection, row, await access.actor(connection), body.note)
        return await _changed(connection, access, id, acted.changed, acted.seq)


@router.post("/alarms/{id}:resolve", summary="Resolve an alarm")
async def resolve_alarm(
    access: Annotated[Access, may(Operation.RESOLVE_ALARM)], id: uuid.UUID, body: NoteRequest
) -> AlarmChange:
    async with access.session() as connection:
        row = await find_alarm(connection, access, id)
        access.require(row["owner"], "alarm of owner")
        acted = await resolve(connection, row, await access.actor(connection), body.note)
        return await _changed(connection, access, id, acted.changed, acted.seq)


@router.post("/alarms/{id}:snooze", summary="Snooze an alarm, or end its snooze")
async def snooze_alarm(
    access: Annotated[Access, may(Operation.SNOOZE_ALARM)], id: uuid.UUID, body: SnoozeRequest
) -> AlarmChange:
    async with access.session() as connection:
        row = await find_alarm(connection, access, id)
        access.require(row["owner"], "alarm of owner")
        actor = await access.actor(connection)
        acted = await snooze(connection, row, actor, end_of(body.for_, body.until, actor.now))
        return await _changed(connection, access, id, acted.changed, acted.seq)


async def find_alarm(connection: Connection, access: Access, id: uuid.UUID) -> Row:
    """The alarm, if the caller may view its owner. `NotFound` otherwise."""
    parameters = {"id": id, "owners": access.visible_owners}
    row = await fetch_dict(connection, "tocsin.api.v1/find_alarm", parameters)
    if row is None:
        raise NotFound(f"there is no alarm '{id}'", remedy="`GET /v1/alarms?state=all` lists them")
    await add_suppressions(connection, access, [row])
    return row


async def _changed(
    connection: Connection, access: Access, id: uuid.UUID, changed: bool, seq: int | None
) -> AlarmChange:
    return AlarmChange(changed=changed, seq=seq, alarm=alarm_view(await find_alarm(connection, access, id)))


async def add_suppressions(connection: Connection, access: Access, rows: list[Row]) -> None:
    """Add why open alarms notify no one. An alarm of another owner that inhibits is not named."""
    open_alarms = [matched_alarm(row) for row in rows if row["state"] == "open"]
    found = {}
    if open_alarms:
        found = await _suppressions.of(connection, open_alarms, await database_now(connection))
    sees_all = "*" in access.owners_of(Operation.VIEW_ALARMS)
    for row in rows:
        suppression = found.get(row["id"])
        key = None if suppression is None else str(suppression.key)
        is_foreign = key is not None and key.startswith("alarm:") and not sees_all
        row["suppressed_by"] = "inhibit" if is_foreign else key
        # A silence of the instance may say why about others.
        row["suppressed_because"] = suppression.reason if suppression is not None and sees_all else None


def alarm_view(row: Row) -> AlarmView:
    same = {name: row[name] for name in AlarmView.model_fields if name in row}
    return AlarmView(
        **{
            **same,
            "rule": row["event_rule"],
            "severity": level_name(row["severity"]),
            "level": row["severity"],
        }
    )
