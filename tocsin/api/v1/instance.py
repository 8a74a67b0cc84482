"""Resources of the whole instance: systems, timers, channels, notifications, and the doctor."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from nats.aio.client import Client
from pydantic import BaseModel, ConfigDict, Field

from rules.actions.channel_tests import await_outcome, request_test
from rules.actions.channels import read_channel
from rules.alarms.notifications import list_notifications as read_notifications
from rules.delivery.alarm_facts import KINDS
from rules.documents.applied import list_channels as read_channels
from rules.health.queries import list_health
from timers.retry import retry_timer
from timers.working_set import list_timers as read_timers
from tocsin.api.access.permission import Access, may
from tocsin.api.pages import MOST, Page
from tocsin.api.v1.inputs import OptionalText
from tocsin.core.errors import InvalidInput
from tocsin.doctor.examine import examine
from tocsin.policy import Operation

router = APIRouter(tags=["instance"])
ViewingRules = Annotated[Access, may(Operation.VIEW_RULES)]
ViewingHealth = Annotated[Access, may(Operation.VIEW_HEALTH)]
Limit = Annotated[int, Query(ge=1, le=MOST)]


class SystemView(BaseModel):
    system: str
    health: str = Field(description="ok, degraded, outage or unknown.")
    reason: str | None
    since: datetime | None
    members: int
    waiting_since: datetime | None = Field(description="First observation that is not decided yet.")
    not_ok: list[dict[str, Any]] = Field(description="Members that are not ok, the worst first.")


class TimerView(BaseModel):
    kind: str
    ref: str
    key: str
    schedule: str | None
    fire_at: datetime
    nominal_at: datetime
    generation: int
    attempts: int
    last_error: str | None
    parked_at: datetime | None
    cause: str | None = Field(description="`pipeline-behind` while it is held.")


class TimerRetryRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")
    kind: Literal["schedule-tick", "for-sustain", "runbook-wait", "watchdog"]
    ref: str = Field(min_length=1, max_length=1536, description="Ref of the timer, or name of a schedule.")
    key: str = Field(default="", max_length=512)


class TimerRetried(BaseModel):
    kind: str
    ref: str
    key: str
    attempts: int = Field(description="Failures before the retry.")
    last_error: str | None


class ChannelView(BaseModel):
    name: str
    type: str
    target: str = Field(description="Host or mail address; a secret by its reference.")
    enabled: bool
    send_resolved: bool


class ChannelTestRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")
    transition: str = Field(default="opened", max_length=40)


class ChannelTestResult(BaseModel):
    channel: str
    enabled: bool
    state: str = Field(description="delivered, retryable or permanent.")
    text: str


class NotificationView(BaseModel):
    id: uuid.UUID
    route: str
    channel: str | None
    owner: str
    state: str
    started_at: datetime
    ended_at: datetime | None
    failing_since: datetime | None
    held_by: list[str] | None
    messages: int
    failures: int
    fallback_messages: int
    delivered_at: datetime | None
    next_at: datetime | None
    alarms: int
    error: str


@router.get("/systems", summary="List systems with their health")
async def list_systems(access: ViewingHealth) -> Page[SystemView]:
    async with access.session() as connection:
        rows = await list_health(connection)
    return Page[SystemView](items=[SystemView(**row) for row in rows[:MOST]])


class FindingView(BaseModel):
    state: Literal["ok", "info", "red"]
    subject: str
    text: str
    remedy: str = Field(description="Empty unless it is red.")


class Findings(BaseModel):
    is_healthy: bool = Field(description="Whether nothing is red.")
    findings: list[FindingView]


@router.get("/doctor", summary="Check servers, services, clocks and lag, with a remedy for each problem")
async def run_doctor(access: ViewingHealth) -> Findings:
    found = await examine(access.context.settings, access.session(), _client(access))
    views = [FindingView(**finding._asdict()) for finding in found]
    return Findings(is_healthy=all(view.state != "red" for view in views), findings=views)


@asynccontextmanager
async def _client(access: Access) -> AsyncIterator[Client]:
    yield await access.context.bus()


@router.get("/timers", summary="List pending timers, the next to fire first")
async def list_timers(
    access: ViewingHealth,
    kind: Literal["schedule-tick", "for-sustain", "runbook-wait", "watchdog"] | None = None,
    parked: Annotated[bool, Query(description="Only timers that failed repeatedly.")] = False,
    limit: Limit = 100,
) -> Page[TimerView]:
    async with access.session() as connection:
        rows = await read_timers(connection, kind=kind, parked=parked, limit=limit)
    return Page[TimerView](items=[TimerView(**row) for row in rows])


@router.post("/timers:retry", summary="Make a failed timer due again")
async def retry_one_timer(
    access: Annotated[Access, may(Operation.RETRY_TIMER)], body: TimerRetryRequest
) -> TimerRetried:
    async with access.session() as connection:
        timer = await retry_timer(connection, body.kind, body.ref, body.key, await access.actor(connection))
    return TimerRetried(**{name: timer[name] for name in TimerRetried.model_fields})


@router.get("/channels", summary="List the channels, without secrets")
async def list_channels(access: ViewingRules) -> Page[ChannelView]:
    async with access.session() as connection:
        rows = await read_channels(connection)
    return Page[ChannelView](items=[ChannelView(**row) for row in rows])


@router.post("/channels/{name}:test", summary="Send a test message through a channel; a worker sends it")
async def test_channel(
    access: Annotated[Access, may(Operation.TEST_CHANNEL)],
    name: Annotated[str, Path(max_length=128)],
    body: ChannelTestRequest,
) -> ChannelTestResult:
    if body.transition not in KINDS:
        raise InvalidInput(f"unknown transition {body.transition!r}", remedy=f"use one of {', '.join(KINDS)}")
    async with access.session() as connection:
        channel = await read_channel(connection, name)
        id = await request_test(connection, name, body.transition, access.caller.name)
        outcome = await await_outcome(connection, id)
    return ChannelTestResult(channel=name, enabled=channel.enabled, state=outcome.state, text=outcome.text)


@router.get("/notifications", summary="List notifications of open alarms, those that fail first")
async def list_notifications(
    access: Annotated[Access, may(Operation.VIEW_ALARMS)],
    state: Literal["due", "idle", "gathering", "held", "failing", "failed"] | None = None,
    channel: OptionalText = None,
    limit: Limit = 100,
) -> Page[NotificationView]:
    states = None if state is None else (state,)
    async with access.session() as connection:
        rows = await read_notifications(
            connection, states=states, channel=channel, owners=access.owners, limit=limit
        )
    sees_all = "*" in access.owners
    return Page[NotificationView](items=[_notification(row, sees_all) for row in rows])


def _notification(row: dict[str, Any], sees_all: bool) -> NotificationView:
    """Without the ids of alarms of other owners that inhibit."""
    held_by = row["held_by"]
    if held_by is not None and not sees_all:
        held_by = ["inhibit" if key.startswith("alarm:") else key for key in held_by]
    return NotificationView(
        **{**{name: row[name] for name in NotificationView.model_fields}, "held_by": held_by}
    )
