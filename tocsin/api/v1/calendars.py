"""`/v1/calendars`: the calendars in force, and the days of one in a year."""

from __future__ import annotations

import asyncio
from datetime import date
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field

from rules.documents.calendar_year import calendars_in_force, days_of_year
from timers.working_set import database_now
from tocsin.api.access.permission import Access, may
from tocsin.api.pages import MOST, Page
from tocsin.policy import Operation

router = APIRouter(tags=["calendars"])
Viewing = Annotated[Access, may(Operation.VIEW_RULES)]


class CalendarView(BaseModel):
    name: str
    definition: dict[str, Any] = Field(description="The calendar with those that it names inside.")


class CalendarYear(BaseModel):
    calendar: str
    year: int
    days: list[date]
    days_of_year: int


@router.get("/calendars", summary="List the calendars in force")
async def list_calendars(access: Viewing) -> Page[CalendarView]:
    async with access.session() as connection:
        calendars = await calendars_in_force(connection)
    names = sorted(calendars.names)[:MOST]
    return Page[CalendarView](
        items=[CalendarView(name=name, definition=calendars.definition(name)) for name in names]
    )


@router.get("/calendars/{name}", summary="List the days of a calendar in a year")
async def read_calendar(
    access: Viewing,
    name: Annotated[str, Path(max_length=128)],
    year: Annotated[int | None, Query(ge=1971, le=2200, description="This year by default, in UTC.")] = None,
) -> CalendarYear:
    async with access.session() as connection:
        calendars = await calendars_in_force(connection)
        shown = year or (await database_now(connection)).year
    # The holidays of a country take milliseconds.
    days, number = await asyncio.to_thread(days_of_year, calendars, name, shown)
    return CalendarYear(calendar=name, year=shown, days=days, days_of_year=number)
