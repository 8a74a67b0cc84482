"""`/v1/schedules/{id}:pause`, `resume`, `run`, `cancel` and `move`: commands about one schedule.

Each is one transaction with its event and its audit row. `If-Match` is optional here: a pause means the
same whatever the content is. With it, another version is refused.
"""

from __future__ import annotations

import uuid
from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from clock import schedule_commands
from timers.natural_time import parse_when
from timers.schedules import find_schedule
from tocsin.api.access.permission import Access, may
from tocsin.api.etags import IfMatch, etag
from tocsin.api.v1.schedules import ScheduleView, check_generation, find_row, schedule_view
from tocsin.client.schedules import schedule_move
from tocsin.core.db import Connection
from tocsin.core.errors import NotFound
from tocsin.policy import Operation

router = APIRouter(tags=["schedules"])


class ScheduleChanged(BaseModel):
    changed: bool
    schedule: ScheduleView


class ScheduleRun(BaseModel):
    seq: int = Field(description="Seq of the event, with the type and payload of a fire.")


class MoveRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")
    at: str = Field(min_length=1, max_length=200, description='An instant, or a phrase such as "in 10m".')
    tz: str = Field(default="UTC", max_length=100)


@router.post("/schedules/{id}:pause", summary="Pause a schedule")
async def pause_schedule(
    access: Annotated[Access, may(Operation.PAUSE_SCHEDULE)],
    id: uuid.UUID,
    response: Response,
    if_match: IfMatch = None,
) -> ScheduleChanged:
    return await _change(access, id, response, if_match, schedule_commands.pause)


@router.post("/schedules/{id}:resume", summary="Resume a paused schedule")
async def resume_schedule(
    access: Annotated[Access, may(Operation.PAUSE_SCHEDULE)],
    id: uuid.UUID,
    response: Response,
    if_match: IfMatch = None,
) -> ScheduleChanged:
    return await _change(access, id, response, if_match, schedule_commands.resume)


@router.post("/schedules/{id}:cancel", summary="Cancel a schedule")
async def cancel_schedule(
    access: Annotated[Access, may(Operation.CANCEL_SCHEDULE)],
    id: uuid.UUID,
    response: Response,
    if_match: IfMatch = None,
) -> ScheduleChanged:
    return await _change(access, id, response, if_match, schedule_commands.cancel)


@router.delete("/schedules/{id}", status_code=204, summary="Cancel a schedule; it stays in lists")
async def delete_schedule(
    access: Annotated[Access, may(Operation.CANCEL_SCHEDULE)],
    id: uuid.UUID,
    response: Response,
    if_match: IfMatch = None,
) -> None:
    await _change(access, id, response, if_match, schedule_commands.cancel)


@router.post("/schedules/{id}:run", summary="Run a schedule now; its times do not change")
async def run_schedule(access: Annotated[Access, may(Operation.RUN_SCHEDULE)], id: uuid.UUID) -> ScheduleRun:
    async with access.session() as connection:
        row = await find_row(connection, access, id)
        access.require(row["owner"], "schedule of owner")
        actor = await access.actor(connection)
        return ScheduleRun(seq=await schedule_commands.run_now(connection, row["owner"], row["name"], actor))


@router.post("/schedules/{id}:move", summary="Move a one-shot schedule to another time")
async def move_schedule(
    access: Annotated[Access, may(Operation.PUT_SCHEDULE)],
    id: uuid.UUID,
    body: MoveRequest,
    response: Response,
    if_match: IfMatch = None,
) -> ScheduleChanged:
    async with access.session() as connection:
        row = await find_row(connection, access, id)
        access.require(row["owner"], "schedule of owner")
        if if_match is not None:
            await check_generation(connection, row, if_match)
        actor = await access.actor(connection)
        at = parse_when(body.at, now=actor.now, tz=body.tz)
        moved = await schedule_move(
            connection, owner=row["owner"], name=row["name"], at=at, moved_by=access.caller.name
        )
        return await _shown(connection, row["owner"], row["name"], not moved.deduped, response)


async def _change(
    access: Access,
    id: uuid.UUID,
    response: Response,
    if_match: str | None,
    command: schedule_commands.ScheduleCommand,
) -> ScheduleChanged:
    async with access.session() as connection:
        row = await find_row(connection, access, id)
        access.require(row["owner"], "schedule of owner")
        expected = None
        if if_match is not None:
            await check_generation(connection, row, if_match)
            expected = row["generation"]
        actor = await access.actor(connection)
        put = await command(connection, row["owner"], row["name"], actor, if_generation=expected)
        return await _shown(connection, row["owner"], row["name"], put.outcome != "unchanged", response)


async def _shown(
    connection: Connection, owner: str, name: str, changed: bool, response: Response
) -> ScheduleChanged:
    row = await find_schedule(connection, owner, name)
    if row is None:
        raise NotFound(f"there is no schedule {name!r}", remedy="retention has removed it")
    response.headers["etag"] = etag(row["generation"])
    return ScheduleChanged(changed=changed, schedule=schedule_view(row))
