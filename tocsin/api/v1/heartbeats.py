"""`/v1/heartbeats`: jobs that must check in, their check-ins, and a check-in."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, ConfigDict, Field

from rules.alarms.heartbeats import HeartbeatRow
from rules.alarms.heartbeats import list_heartbeats as read_heartbeats
from tocsin.api.access.permission import Access, may
from tocsin.api.pages import MOST, Keyset, Page, Paged, big_integer, instant
from tocsin.api.v1.inputs import OptionalText
from tocsin.client.producer import Producer
from tocsin.core.db import fetch_dicts
from tocsin.core.errors import InvalidInput, NotFound
from tocsin.policy import Operation, matches

router = APIRouter(tags=["heartbeats"])
Viewing = Annotated[Access, may(Operation.VIEW_SERIES)]
Name = Annotated[str, Path(min_length=1, max_length=128)]
_BY_ARRIVAL = Keyset({"arrived_at": instant, "stream_seq": big_integer, "position": big_integer})
_BAD = ("late", "failed", "overrun", "held")
_SEND_WITHIN_S = 5.0


class HeartbeatView(BaseModel):
    name: str
    owner: str
    status: str = Field(description="ok, running, late, failed, overrun, held, new or disabled.")
    last_at: datetime | None
    last_status: str
    last_success_at: datetime | None
    last_duration_s: float | None
    expected_at: datetime | None
    due_at: datetime | None = Field(description="When it is late: the expected time and the grace.")
    missed: int
    running: int
    excused_at: datetime | None
    alarm_id: str | None
    tz: str
    title: str
    late_by_s: float | None


class Heartbeats(BaseModel):
    now: datetime
    items: list[HeartbeatView]


class CheckInView(BaseModel):
    arrived_at: datetime
    ts: datetime
    value: Any
    labels: dict[str, Any]


class CheckInRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")
    status: Literal["start", "success", "fail"] = "success"
    owner: str | None = Field(default=None, max_length=128, description="The name of the heartbeat if null.")
    run: str = Field(default="", max_length=128, description="Pairs the start and the end of a run.")
    exit_code: int | None = Field(default=None, ge=-(2**31), le=2**31 - 1)
    duration_s: float | None = Field(default=None, ge=0, le=1e9)
    log: str = Field(default="", max_length=100_000, description="The last 4,096 characters are kept.")
    key: str | None = Field(
        default=None, min_length=1, max_length=200, description="Same key: same check-in."
    )


class CheckedIn(BaseModel):
    heartbeat: str
    owner: str
    status: str
    run: str


@router.get("/heartbeats", summary="List heartbeats by name and owner")
async def list_heartbeats(
    access: Viewing,
    name: OptionalText = None,
    owner: OptionalText = None,
    bad: Annotated[bool, Query(description="Only late, failed, overrun and held ones.")] = False,
) -> Heartbeats:
    async with access.session() as connection:
        now, rows = await read_heartbeats(connection, name=name, owner=owner)
    visible = [row for row in rows if _is_visible(access, row.owner) and (not bad or row.status in _BAD)]
    return Heartbeats(now=now, items=[_view(row) for row in visible[:MOST]])


@router.get("/heartbeats/{name}", summary="Read a heartbeat, for each of its owners")
async def read_heartbeat(access: Viewing, name: Name, owner: OptionalText = None) -> Heartbeats:
    found = await list_heartbeats(access, name=name, owner=owner)
    if not found.items:
        raise NotFound(f"there is no heartbeat {name!r}", remedy="`GET /v1/heartbeats` lists them")
    return found


@router.get("/heartbeats/{name}/check-ins", summary="List check-ins of a heartbeat, the newest first")
async def list_check_ins(
    access: Viewing,
    page: Paged,
    name: Name,
    owner: Annotated[
        str | None, Query(max_length=128, description="The name of the heartbeat if null.")
    ] = None,
) -> Page[CheckInView]:
    of = name if owner is None else owner
    access.require(of, "heartbeat of owner")
    parameters = {"owner": of, "key": f"heartbeat.{name}", "owners": access.owners, **_BY_ARRIVAL.after(page)}
    async with access.session() as connection:
        rows = await fetch_dicts(connection, "tocsin.api.v1/list_check_ins", parameters)
    return _BY_ARRIVAL.page(page, rows, lambda row: CheckInView(**{**row, "labels": row["labels"] or {}}))


@router.post("/heartbeats/{name}:check-in", status_code=202, summary="Check in to a heartbeat")
async def check_in(
    access: Annotated[Access, may(Operation.SEND_DATA)], name: Name, body: CheckInRequest
) -> CheckedIn:
    owner = name if body.owner is None else body.owner
    access.require(owner, "heartbeat of owner")
    if body.status == "start" and body.exit_code is not None:
        raise InvalidInput("a start has no exit code", remedy="leave out exit_code")
    status = body.status if body.exit_code is None else "fail" if body.exit_code else "success"
    bus = await access.context.bus()
    fields = body.model_dump(exclude={"owner", "status"})
    async with Producer(access.context.settings, timeout_s=_SEND_WITHIN_S, bus=bus) as producer:
        await producer.check_in(name, status, owner=owner, **fields)
    return CheckedIn(heartbeat=name, owner=owner, status=status, run=body.run)


def _is_visible(access: Access, owner: str) -> bool:
    return any(matches(owner, pattern) for pattern in access.owners)


def _view(row: HeartbeatRow) -> HeartbeatView:
    late_by_s = None if row.late_by is None else row.late_by.total_seconds()
    return HeartbeatView(**{**row._asdict(), "late_by_s": late_by_s})
