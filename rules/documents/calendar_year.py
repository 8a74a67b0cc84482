"""The calendars in force, and the days of one in a year."""

from __future__ import annotations

from datetime import date, timedelta

from rules.documents.load.calendars import Calendars
from rules.documents.rule_book import applied_documents
from schemas.documents import CalendarDocument
from timers.recurrence.day_set import day_set, definition_text
from tocsin.core.db import Connection
from tocsin.core.errors import NotFound


async def calendars_in_force(connection: Connection) -> Calendars:
    applied = await applied_documents(connection, CalendarDocument)
    return Calendars(model for model in applied if isinstance(model, CalendarDocument))


def days_of_year(calendars: Calendars, name: str, year: int) -> tuple[list[date], int]:
    """The days of a calendar in a year, and the number of days that the year has."""
    if name not in calendars.names:
        known = ", ".join(sorted(calendars.names)) or "there is none"
        raise NotFound(f"no calendar {name!r} is known", remedy=f"use one of these: {known}")
    days = day_set(definition_text(calendars.definition(name)))
    first = date(year, 1, 1)
    of_year = [day for number in range(366) if (day := first + timedelta(days=number)).year == year]
    return [day for day in of_year if day in days], len(of_year)
