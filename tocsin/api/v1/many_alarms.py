"""`/v1/alarms:ack`, `:snooze` and `:resolve`: several alarms, by ids or by a matcher.

A matcher is previewed first: with `preview` the answer has how many alarms match now and the first of
them, and nothing changes. `expected` then guards the change: if another number matches meanwhile, it is
refused. Only alarms of owners for which the caller may do it are matched. Each alarm is one
transaction; one that cannot be changed does not stop the others.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from rules.alarms.matching_alarms import compile_where, matching_alarms
from rules.alarms.operator import OperatorResult, acknowledge, snooze
from rules.alarms.resolve import resolve
from tocsin.api.access.permission import Access, may
from tocsin.api.v1.alarms import AlarmView, add_suppressions, alarm_view, find_alarm
from tocsin.api.v1.inputs import Matcher, Note, end_of
from tocsin.core.audit import Actor
from tocsin.core.db import Connection
from tocsin.core.errors import InvalidInput, NotFound, Refused
from tocsin.policy import Operation

router = APIRouter(tags=["alarms"])
Row = dict[str, Any]
Change = Callable[[Connection, Row, Actor], Awaitable[OperatorResult]]
_MOST_IDS = 500
_MOST_MATCHED = 10_000
_SHOWN = 20


class ManyAlarms(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)
    ids: list[uuid.UUID] = Field(default_factory=list, max_length=_MOST_IDS)
    where: Matcher | None = None
    preview: bool = Field(default=False, description="Only count and show what would change.")
    expected: int | None = Field(
        default=None, ge=0, le=1_000_000, description="Refuse if another number of alarms matches now."
    )


class ManyWithNote(ManyAlarms):
    note: Note = ""


class ManySnoozed(ManyAlarms):
    for_: str | None = Field(default=None, alias="for", max_length=40, examples=["2h"])
    until: AwareDatetime | None = None


class OneChanged(BaseModel):
    id: uuid.UUID
    changed: bool
    seq: int | None


class OneFailed(BaseModel):
    id: uuid.UUID
    detail: str


class ManyChanged(BaseModel):
    matches: int = Field(description="How many alarms the request is about.")
    preview: list[AlarmView] = Field(description="The first of them; empty unless `preview` was asked for.")
    changed: list[OneChanged]
    failed: list[OneFailed]


@router.post("/alarms:ack", summary="Acknowledge several alarms")
async def ack_alarms(
    access: Annotated[Access, may(Operation.ACKNOWLEDGE_ALARM)], body: ManyWithNote
) -> ManyChanged:
    async def change(connection: Connection, row: Row, actor: Actor) -> OperatorResult:
        return await acknowledge(connection, row, actor, body.note)

    return await _change_many(access, body, change)


@router.post("/alarms:resolve", summary="Resolve several alarms")
async def resolve_alarms(
    access: Annotated[Access, may(Operation.RESOLVE_ALARM)], body: ManyWithNote
) -> ManyChanged:
    async def change(connection: Connection, row: Row, actor: Actor) -> OperatorResult:
        return await resolve(connection, row, actor, body.note)

    return await _change_many(access, body, change)


@router.post("/alarms:snooze", summary="Snooze several alarms, or end their snoozes")
async def snooze_alarms(
    access: Annotated[Access, may(Operation.SNOOZE_ALARM)], body: ManySnoozed
) -> ManyChanged:
    async def change(connection: Connection, row: Row, actor: Actor) -> OperatorResult:
        return await snooze(connection, row, actor, end_of(body.for_, body.until, actor.now))

    return await _change_many(access, body, change)


async def _change_many(access: Access, body: ManyAlarms, change: Change) -> ManyChanged:
    async with access.session() as connection:
        rows = await _choose(connection, access, body)
        result = ManyChanged(matches=len(rows), preview=[], changed=[], failed=[])
        if body.preview:
            shown = rows[:_SHOWN]
            await add_suppressions(connection, access, shown)
            result.preview = [alarm_view(row) for row in shown]
            return result
        if body.expected is not None and len(rows) != body.expected:
            raise Refused(
                f"{len(rows)} alarms match now, not {body.expected}",
                remedy="preview it again, and send the number that it shows",
            )
        for row in rows:
            try:
                acted = await change(connection, row, await access.actor(connection))
                result.changed.append(OneChanged(id=row["id"], changed=acted.changed, seq=acted.seq))
            except (Refused, InvalidInput) as error:
                result.failed.append(OneFailed(id=row["id"], detail=str(error)))
    return result


async def _choose(connection: Connection, access: Access, body: ManyAlarms) -> list[Row]:
    if bool(body.ids) == (body.where is not None):
        raise InvalidInput(
            "ids and where exclude each other" if body.ids else "name the alarms by `ids` or by `where`",
            remedy="`where` is a matcher such as 'labels.site == \"ams\"'",
        )
    if body.where is not None:
        matcher = compile_where(body.where, "where")
        return await matching_alarms(connection, matcher, owners=access.owners, limit=_MOST_MATCHED)
    rows = {id: await find_alarm(connection, access, id) for id in body.ids}
    for id, row in rows.items():
        try:
            access.require(row["owner"])
        except NotFound:
            raise NotFound(f"there is no alarm '{id}'") from None
    return list(rows.values())
