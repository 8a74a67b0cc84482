"""Schedules and their coming fires over HTTP."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pydantic import TypeAdapter

from timers.schedules import FINISHED, PutResult
from tocsin.cli.remote.api_client import ApiClient, Row, with_instants
from tocsin.core.errors import Forbidden, InvalidInput, NotFound, Refused

if TYPE_CHECKING:
    from tocsin.cli.schedules.change import ScheduleChange

_DURATION = TypeAdapter(timedelta)
_COLUMNS = (
    *("id", "owner", "name", "recurrence", "spread", "catch_up", "window", "grace", "max_catch_up", "type"),
    *("payload", "action", "retry", "title", "description", "runbook_url", "status", "generation", "source"),
    *("created_by", "created_via", "created_at", "updated_at", "fire_at", "attempts", "last_error"),
    *("parked_at", "last_result"),
)


def _row(item: Row) -> Row:
    """The row of a schedule with its tick, as the database has it."""
    row = {name: item[name] for name in _COLUMNS}
    for name in ("spread", "window", "grace"):
        row[name] = None if row[name] is None else _DURATION.validate_python(row[name])
    if row["last_result"] is not None:
        result = with_instants(row["last_result"])
        took_ms = result.pop("took_ms")
        row["last_result"] = {**result, "took": None if took_ms is None else timedelta(milliseconds=took_ms)}
    return {**row, "nominal_at": item["next_fire_at"], "last_occurrence": item["last_fired_at"]}


async def list_schedules(
    api: ApiClient, owner: str | None, type_: str | None, status: str | None, limit: int
) -> list[Row]:
    statuses = ("active", "paused", *FINISHED)
    if status is not None and status not in statuses:
        raise InvalidInput(f"unknown status {status!r}", remedy=f"use one of {', '.join(statuses)}")
    items = await api.items("/v1/schedules", limit, owner=owner, type=type_, status=status, sort="next")
    return [_row(item) for item in items]


async def find_schedule(api: ApiClient, owner: str, name: str) -> Row:
    items = await api.items("/v1/schedules", 1, owner=owner, name=name)
    if not items:
        of_owner = f" of owner {owner!r}" if owner else ""
        raise Refused(f"there is no schedule {name!r}{of_owner}", remedy="`tocsin schedules` lists them")
    return _row(items[0])


async def show(api: ApiClient, owner: str, name: str) -> Row:
    return await find_schedule(api, owner, name)


async def run(api: ApiClient, owner: str, name: str, who: str) -> int:
    row = await find_schedule(api, owner, name)
    return int((await api.write(f"/v1/schedules/{row['id']}:run"))["seq"])


async def change(
    api: ApiClient, change: ScheduleChange, owner: str, name: str, if_generation: int | None, who: str
) -> tuple[PutResult, Row]:
    """`change` is one of `clock.schedule_commands`, whose names are those of the API."""
    row = await find_schedule(api, owner, name)
    verb = change.__name__  # type: ignore[attr-defined]
    if_match = None if if_generation is None else f'"{if_generation}"'
    answer = await api.write(f"/v1/schedules/{row['id']}:{verb}", if_match=if_match)
    after = {**await find_schedule(api, owner, name), "last_result": None}
    return _put("changed" if answer["changed"] else "unchanged", after), after


async def add(
    api: ApiClient, values: Row, replaces: bool, if_generation: int | None, who: str
) -> tuple[PutResult, Row]:
    body = {name: value for name, value in values.items() if value is not None}
    if if_generation is None and not replaces:
        answer = await api.write("/v1/schedules", body)
        return _outcome(answer)
    try:
        row = await find_schedule(api, values["owner"], values["name"])
    except (NotFound, Forbidden):
        raise
    except Refused:
        return _outcome(await api.write("/v1/schedules", body))
    content = {name: value for name, value in body.items() if name not in ("owner", "name")}
    if_match = "*" if if_generation is None else f'"{if_generation}"'
    answer = await api.write(f"/v1/schedules/{row['id']}", content, method="PUT", if_match=if_match)
    return _outcome(answer)


def _outcome(answer: Row) -> tuple[PutResult, Row]:
    row = {**_row(with_instants(answer["schedule"])), "last_result": None}
    return _put(answer["outcome"], row), row


def _put(outcome: str, row: Row) -> PutResult:
    return PutResult(outcome, UUID(row["id"]), row["generation"], row["nominal_at"])


async def upcoming(
    api: ApiClient, owner: str | None, schedule: str | None, type_: str | None, count: int
) -> tuple[datetime, list[Row], list[Row]]:
    """The rows of active and of paused schedules, from which the command computes the fires."""
    filters: dict[str, Any] = {"owner": owner, "name": schedule, "type": type_}
    answer = with_instants(await api.get("/v1/upcoming", owner=owner, schedule=schedule, type=type_, count=1))
    active = await api.items("/v1/schedules", count, **filters, status="active", sort="next")
    paused = await api.items("/v1/schedules", 100, **filters, status="paused", sort="next")
    return answer["now"], [_row(item) for item in active], [_row(item) for item in paused]
