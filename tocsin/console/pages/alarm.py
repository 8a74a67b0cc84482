"""`/alarms/ID`: why is it open, and what was done? The transitions, runs and notifications of one alarm."""

from __future__ import annotations

import uuid
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from rules.alarms.explain import TRANSITION_TEXTS, explain_alarm
from rules.alarms.notifications import list_notifications, status_text
from rules.alarms.operator import alarm_title
from rules.alarms.operator_text import acknowledged_text, resolved_text, snoozed_text
from rules.alarms.queries import list_alarm_events, list_alarm_runs
from timers.recurrence.zones import zone
from tocsin.api.v1.alarms import (
    AlarmChange,
    AlarmView,
    NoteRequest,
    SnoozeRequest,
    ack_alarm,
    alarm_view,
    find_alarm,
    resolve_alarm,
    snooze_alarm,
)
from tocsin.console.alarm_pictures import alarm_chart, view_of
from tocsin.console.commands import alarms_command, command_line, with_note
from tocsin.console.form import read_form
from tocsin.console.page import console_page
from tocsin.console.visit import Visit
from tocsin.core.db import fetch_dicts
from tocsin.pictures.chart import Point
from tocsin.pictures.figure import Picture
from tocsin.policy import Operation

_POINTS = 5_000


async def show_alarm(visit: Visit) -> Response:
    id = visit.path_id("alarm")
    row = await find_alarm(visit.connection, visit.access, id)
    explained = await explain_alarm(visit.connection, row, visit.now)
    events = await list_alarm_events(visit.connection, id)
    notifications = await list_notifications(visit.connection, alarm_id=id)
    alarm = alarm_view(row)
    return visit.page(
        "pages/alarm.html",
        {
            "alarm": alarm,
            "chart": await _chart(visit, alarm),
            "explained": explained,
            "transitions": [_transition(event) for event in events],
            "runs": await list_alarm_runs(visit.connection, id),
            "notifications": [{**each, "text": status_text(each)} for each in notifications],
            "commands": _commands(id),
            "runbook_url": _web_address(row["payload"].get("runbook_url")),
        },
    )


def _transition(event: dict[str, Any]) -> dict[str, Any]:
    return {**event, "text": TRANSITION_TEXTS.get(event["type"], event["type"])}


def _commands(id: uuid.UUID) -> dict[str, str]:
    return {
        "explain": command_line("explain", str(id)[:8]),
        "ack": alarms_command("ack", [id]),
        "snooze": alarms_command("snooze", [id], before=("2h",)),
        "resolve": alarms_command("resolve", [id]),
    }


async def _chart(visit: Visit, alarm: AlarmView) -> Picture | None:
    """The values of its series, if the caller may view them; None for an alarm over something else."""
    key = alarm.payload.get("key")
    if not isinstance(key, str) or not visit.can(Operation.VIEW_SERIES, alarm.owner):
        return None
    view = view_of(alarm, visit.now, zone(visit.tz))
    series = [text for text in alarm.payload.get("series") or () if isinstance(text, str)]
    parameters = {
        "owner": alarm.owner,
        "keys": [alarm.instance if alarm.instance in series else key],
        "start": view.start,
        "end": view.end,
        "limit": _POINTS,
    }
    rows = await fetch_dicts(visit.connection, "tocsin.console/list_values", parameters)
    values = [(row["arrived_at"], row["value"]) for row in rows]
    points = [Point(at, float(found)) for at, found in values if isinstance(found, int | float)]
    return alarm_chart(alarm, points, view) if points else None


def _web_address(text: Any) -> str:
    """A runbook as a link; empty for any other scheme, such as `javascript:`."""
    return text if isinstance(text, str) and text.startswith(("https://", "http://")) else ""


async def acknowledge(visit: Visit) -> Response:
    id, form = visit.path_id("alarm"), await read_form(visit.request)
    note = form.text("note")
    done = await ack_alarm(visit.access, id, NoteRequest(note=note))
    seq = done.seq if done.changed else None
    text = acknowledged_text(_title(done), seq, done.alarm.acknowledged_by, done.alarm.acknowledged_at)
    return visit.done(f"/alarms/{id}", text, command=alarms_command("ack", [id], options=with_note(note)))


async def resolve(visit: Visit) -> Response:
    id, form = visit.path_id("alarm"), await read_form(visit.request)
    note = form.text("note")
    done = await resolve_alarm(visit.access, id, NoteRequest(note=note))
    text = resolved_text(_title(done), done.seq)
    return visit.done(f"/alarms/{id}", text, command=alarms_command("resolve", [id], options=with_note(note)))


async def snooze(visit: Visit) -> Response:
    """A `for` of nothing ends the snooze."""
    id, form = visit.path_id("alarm"), await read_form(visit.request)
    duration = form.text("for") or None
    done = await snooze_alarm(visit.access, id, SnoozeRequest.model_validate({"for": duration}))
    text = snoozed_text(_title(done), done.seq, done.alarm.snoozed_until)
    command = alarms_command("snooze", [id], before=(duration,) if duration else ("--off",))
    return visit.done(f"/alarms/{id}", text, command=command)


def _title(done: AlarmChange) -> str:
    return alarm_title(done.alarm.id, done.alarm.rule, done.alarm.owner)


ROUTES = (
    Route("/alarms/{id}", console_page(Operation.VIEW_ALARMS, show_alarm), methods=["GET"]),
    Route("/alarms/{id}/ack", console_page(Operation.ACKNOWLEDGE_ALARM, acknowledge), methods=["POST"]),
    Route("/alarms/{id}/snooze", console_page(Operation.SNOOZE_ALARM, snooze), methods=["POST"]),
    Route("/alarms/{id}/resolve", console_page(Operation.RESOLVE_ALARM, resolve), methods=["POST"]),
)
