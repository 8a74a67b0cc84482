"""`/v1/upcoming`: the next fires of active schedules."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from timers.coming_fires import coming_fires, tz_of
from timers.working_set import database_now
from tocsin.api.access.permission import Access, may
from tocsin.api.pages import MOST
from tocsin.api.v1.inputs import OptionalText
from tocsin.core.db import fetch_dicts
from tocsin.policy import Operation

router = APIRouter(tags=["schedules"])
_MOST_PAUSED = 100


class FireView(BaseModel):
    schedule: str
    owner: str
    at: datetime = Field(description="Nominal time.")
    fire_at: datetime = Field(description="The nominal time and the spread.")
    tz: str
    note: str = Field(description="A change of the clocks that moved or doubled it, or why it fails.")


class PausedSchedule(BaseModel):
    schedule: str
    owner: str
    tz: str


class Upcoming(BaseModel):
    now: datetime
    fires: list[FireView]
    paused: list[PausedSchedule]


@router.get("/upcoming", summary="List the next fires of active schedules")
async def list_upcoming(
    access: Annotated[Access, may(Operation.VIEW_SCHEDULES)],
    owner: OptionalText = None,
    schedule: OptionalText = None,
    type: OptionalText = None,
    count: Annotated[int, Query(ge=1, le=MOST, description="How many fires.")] = 10,
) -> Upcoming:
    """The next fire of each schedule comes before the second fire of any."""
    filters = {"owners": access.owners, "owner": owner, "name": schedule, "type": type}
    name = "tocsin.api.v1/list_schedules_by_fire"
    first = {"after_fire_at": None, "after_owner": None, "after_name": None}
    async with access.session() as connection:
        now = await database_now(connection)
        active = await fetch_dicts(connection, name, {**filters, **first, "status": "active", "limit": count})
        paused = await fetch_dicts(
            connection, name, {**filters, **first, "status": "paused", "limit": _MOST_PAUSED}
        )
    # Recurrences of others may take milliseconds each.
    fires = await asyncio.to_thread(coming_fires, active, count)
    return Upcoming(
        now=now,
        fires=[FireView(**vars(fire)) for fire in fires],
        paused=[PausedSchedule(schedule=row["name"], owner=row["owner"], tz=tz_of(row)) for row in paused],
    )
