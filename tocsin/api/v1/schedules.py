"""`/v1/schedules`: list, read, create and edit schedules.

`POST` is idempotent by owner and name: the same content again answers 200 with `deduped`, other content
is refused with the difference. An edit needs `If-Match` with the ETag of the schedule, which is its
generation.
"""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from rules.actions.history import read_last_results
from rules.apply.one_schedule import ScheduleEdit, put_one_schedule
from timers.schedules import find_schedule, last_change_text
from tocsin.api.access.permission import Access, may
from tocsin.api.etags import IfMatch, check_match, etag
from tocsin.api.pages import Keyset, Page, Paged, optional_instant
from tocsin.api.v1.inputs import OptionalText
from tocsin.core.db import Connection, fetch_dicts, fetch_one, retrying
from tocsin.core.errors import NotFound
from tocsin.policy import Operation

router = APIRouter(tags=["schedules"])
Viewing = Annotated[Access, may(Operation.VIEW_SCHEDULES)]
Putting = Annotated[Access, may(Operation.PUT_SCHEDULE)]
Row = dict[str, Any]
_BY_NAME = Keyset({"owner": str, "name": str})
_BY_FIRE = Keyset({"fire_at": optional_instant, "owner": str, "name": str})


class LastResult(BaseModel):
    id: uuid.UUID
    state: str
    attempts: int
    error: str | None
    started_at: datetime
    ended_at: datetime | None
    took_ms: int | None


class ScheduleView(BaseModel):
    id: uuid.UUID
    owner: str
    name: str
    title: str | None
    description: str | None
    runbook_url: str | None
    status: str = Field(description="active, paused, fired, ended, cancelled or failed.")
    generation: int = Field(description="Raised by every change; the ETag of the schedule.")
    recurrence: dict[str, Any]
    spread: timedelta
    catch_up: str
    window: timedelta | None
    grace: timedelta | None
    max_catch_up: int
    type: str = Field(description="Type of its events.")
    payload: dict[str, Any] = Field(description="As it was given.")
    action: str | None
    retry: dict[str, Any] | None
    next_fire_at: datetime | None = Field(description="Next nominal time; null unless it is active.")
    last_fired_at: datetime | None = Field(description="Newest nominal time that is done.")
    attempts: int = Field(description="Failures of the next fire; not 0 only if it fails.")
    last_error: str | None
    fire_at: datetime | None = Field(description="The next nominal time and the spread.")
    parked_at: datetime | None = Field(description="When it failed too often; `POST /v1/timers:retry`.")
    last_result: LastResult | None = Field(description="The newest run of its action.")
    source: str = Field(description="`rules` for one of a rule file, otherwise `api`.")
    created_by: str
    created_via: str
    created_at: datetime
    updated_at: datetime


class ScheduleContent(BaseModel):
    """The keys of a `schedule` document. `at` also takes a phrase such as "tomorrow at 9am" or "in 10m"."""

    model_config = ConfigDict(extra="forbid")

    at: str | float | None = None
    every: str | None = Field(default=None, max_length=100)
    cron: str | None = Field(default=None, max_length=1000)
    rrule: str | None = Field(default=None, max_length=10_000)
    dtstart: str | None = Field(default=None, max_length=100)
    tz: str = Field(default="UTC", max_length=100)
    dst_gap: str = Field(default="forward", max_length=20)
    dst_fold: str = Field(default="first", max_length=20)
    starts_at: str | None = Field(default=None, max_length=200)
    ends_at: str | None = Field(default=None, max_length=200)
    type: str = Field(default="schedule-fired", max_length=128)
    payload: dict[str, JsonValue] = Field(default_factory=dict)
    action: str | None = Field(default=None, max_length=128)
    retry: dict[str, JsonValue] | None = None
    spread: str | None = Field(default=None, max_length=100)
    catch_up: str = Field(default="latest", max_length=20)
    window: str | None = Field(default=None, max_length=100)
    grace: str | None = Field(default=None, max_length=100)
    max_catch_up: int = Field(default=100, ge=1, le=10_000)
    title: str | None = Field(default=None, max_length=1000)
    description: str | None = Field(default=None, max_length=10_000)
    runbook_url: str | None = Field(default=None, max_length=4000)


class NewSchedule(ScheduleContent):
    owner: str = Field(default="", max_length=128)
    name: str = Field(min_length=1, max_length=128)


class SchedulePut(BaseModel):
    outcome: str = Field(description="added, changed or unchanged.")
    deduped: bool = Field(description="Whether it was there already with the same content.")
    schedule: ScheduleView


@router.get("/schedules", summary="List schedules by owner and name, or the next to fire first")
async def list_schedules(
    access: Viewing,
    page: Paged,
    owner: OptionalText = None,
    name: OptionalText = None,
    type: OptionalText = None,
    status: Annotated[str | None, Query(pattern="^(active|paused|fired|ended|cancelled|failed)$")] = None,
    sort: Annotated[Literal["name", "next"], Query(description="`next`: the next to fire first.")] = "name",
) -> Page[ScheduleView]:
    order = _BY_FIRE if sort == "next" else _BY_NAME
    statement = "list_schedules_by_fire" if sort == "next" else "list_schedules"
    filters = {"owners": access.owners, "owner": owner, "name": name, "type": type, "status": status}
    async with access.session() as connection:
        rows = await fetch_dicts(connection, f"tocsin.api.v1/{statement}", {**filters, **order.after(page)})
        await add_last_results(connection, rows)
    return order.page(page, rows, schedule_view)


@router.post(
    "/schedules",
    status_code=201,
    summary="Create a schedule; the same one again changes nothing",
    responses={200: {"model": SchedulePut, "description": "It was there already with the same content."}},
)
async def create_schedule(access: Putting, body: NewSchedule, response: Response) -> SchedulePut:
    access.require(body.owner)
    edit = ScheduleEdit(
        remedy='choose another name, or PUT it with `If-Match: "{generation}"`', key_text=_same
    )
    async with access.session() as connection:
        result = await _put(connection, access, body.model_dump(), edit)
    response.status_code = 200 if result.deduped else 201
    response.headers["location"] = f"/v1/schedules/{result.schedule.id}"
    response.headers["etag"] = etag(result.schedule.generation)
    return result


@router.get("/schedules/{id}", summary="Read a schedule")
async def read_schedule(access: Viewing, id: uuid.UUID, response: Response) -> ScheduleView:
    async with access.session() as connection:
        row = await find_row(connection, access, id)
    response.headers["etag"] = etag(row["generation"])
    return schedule_view(row)


@router.put("/schedules/{id}", summary="Replace the content of a schedule")
async def edit_schedule(
    access: Putting, id: uuid.UUID, body: ScheduleContent, response: Response, if_match: IfMatch = None
) -> SchedulePut:
    async with access.session() as connection:
        row = await find_row(connection, access, id)
        access.require(row["owner"], "schedule of owner")
        await check_generation(connection, row, if_match)
        values = {**body.model_dump(), "owner": row["owner"], "name": row["name"]}
        edit = ScheduleEdit(allowed=True, if_generation=row["generation"], key_text=_same)
        result = await _put(connection, access, values, edit)
    response.headers["etag"] = etag(result.schedule.generation)
    return result


async def _put(connection: Connection, access: Access, values: Row, edit: ScheduleEdit) -> SchedulePut:
    if isinstance(values["at"], float):
        values["at"] = repr(values["at"]).removesuffix(".0")

    async def once() -> SchedulePut:
        actor = await access.actor(connection)
        put, row = await put_one_schedule(connection, values, actor, edit)
        return SchedulePut(
            outcome=put.outcome, deduped=put.outcome == "unchanged", schedule=schedule_view(row)
        )

    return await retrying(once)


async def find_row(connection: Connection, access: Access, id: uuid.UUID) -> Row:
    """The schedule, if the caller may view its owner. `NotFound` otherwise."""
    parameters = {"id": id, "owners": access.visible_owners}
    key = await fetch_one(connection, "tocsin.api.v1/find_schedule", parameters)
    row = None if key is None else await find_schedule(connection, *key)
    if row is None:
        raise NotFound(f"there is no schedule '{id}'", remedy="`GET /v1/schedules` lists them")
    await add_last_results(connection, [row])
    return row


async def add_last_results(connection: Connection, rows: list[Row]) -> None:
    """Add the newest run of the action of each schedule; None without an action, or before its first run."""
    keys = [(row["owner"], row["name"]) for row in rows if row["action"]]
    results = await read_last_results(connection, keys) if keys else {}
    for row in rows:
        run = results.get((row["owner"], row["name"])) if row["action"] else None
        row["last_result"] = None if run is None else _last_result(run)


def _last_result(run: Row) -> LastResult:
    took = None if run["ended_at"] is None else run["ended_at"] - run["started_at"]
    took_ms = None if took is None else round(took.total_seconds() * 1000)
    return LastResult(**{**run, "took_ms": took_ms})


async def check_generation(connection: Connection, row: Row, if_match: str | None) -> None:
    """Refuse an edit of another version, with who made the present one."""
    check_match(if_match, row["generation"], changed=await last_change_text(connection, row))


def schedule_view(row: Row) -> ScheduleView:
    same = {name: row[name] for name in ScheduleView.model_fields if name in row}
    next_at = row["nominal_at"] if row["status"] == "active" else None
    return ScheduleView(
        **{
            **same,
            "attempts": row["attempts"] or 0,
            "next_fire_at": next_at,
            "last_fired_at": row["last_occurrence"],
            "last_result": row.get("last_result"),
        }
    )


def _same(key: str) -> str:
    return key
