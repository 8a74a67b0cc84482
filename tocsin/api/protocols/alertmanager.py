"""The API of Alertmanager below `/alertmanager`, for Prometheus, amtool, Karma and Grafana.

`POST alerts` makes events of the alerts of Prometheus. `GET alerts` and `alerts/groups` show open
alarms of the owners that the caller may view, at most `MAX_SHOWN`, the most severe first. Silences are
those of Tocsin. Filters are evaluated by the engine of conditions.

Alerts that Prometheus repeats are known by their keys and are not sent again: their annotations may
have changed meanwhile, and an event does not change.
"""

from __future__ import annotations

import json
from datetime import datetime
from importlib.metadata import version
from typing import Any

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from rules.language.cel import ExpressionInvalid, compile_matcher
from rules.suppression.reader import Suppressions
from rules.suppression.suppression import matched_alarm
from schemas.error_text import error_text
from schemas.wire.ingest_event import IngestEvent
from timers.working_set import database_now
from tocsin.api.access.permission import Access, Public, guarded
from tocsin.api.protocols.metrics import parts_of
from tocsin.api.protocols.outbox import send_events, summary_of
from tocsin.core.db import fetch_all, fetch_dicts
from tocsin.core.errors import InvalidInput
from tocsin.policy import Operation, decide
from tocsin.protocols.alertmanager import MAX_ALERTS_BYTES, PostedAlert, read_alerts
from tocsin.protocols.alertmanager_matchers import condition_of, parse_filter
from tocsin.protocols.alertmanager_views import RECEIVER, VERSION, alert_view, group_views, status_view

PATH = "/alertmanager"
MAX_SHOWN = 2_000


async def post_alerts(request: Request, access: Access) -> Response:
    alerts, problems = read_alerts(await request.body())
    async with access.session() as connection:
        now = await database_now(connection)
        events = await _events(access, alerts, now, problems)
        rows = await fetch_all(
            connection, "tocsin.api.protocols/find_known_events", {"keys": [event.id for event in events]}
        )
    known = {row[0] for row in rows}
    await send_events(access.context, [event for event in events if event.id not in known])
    if problems:
        await parts_of(access).rejections.keep(access, request.url.path, problems)
        return JSONResponse(summary_of(problems), 400)
    return JSONResponse({})


async def _events(
    access: Access, alerts: list[PostedAlert], now: datetime, problems: list[str]
) -> list[IngestEvent]:
    mappings = await parts_of(access).mappings.read(access.context)
    placement = mappings.placements["alertmanager"]
    events = []
    for alert in alerts:
        try:
            owner = placement.owner_of(alert.name, dict(alert.labels))
            if owner is None:
                continue
            if not decide(access.caller.principal, Operation.EMIT_EVENT, owner).allowed:
                raise ValueError(f"{access.caller.name!r} may not emit events for owner {owner!r}")
            events.append(IngestEvent.model_validate_json(json.dumps(alert.event(owner, now))))
        except ValidationError as invalid:
            problems.append(f"the alert {alert.name[:80]!r}: {error_text(invalid)}")
        except ValueError as error:
            problems.append(f"the alert {alert.name[:80]!r}: {error}")
    return events


async def list_alerts(request: Request, access: Access) -> Response:
    return JSONResponse(await _shown_alerts(request, access))


async def list_groups(request: Request, access: Access) -> Response:
    return JSONResponse(group_views(await _shown_alerts(request, access)))


async def _shown_alerts(request: Request, access: Access) -> list[dict[str, Any]]:
    filters = [parse_filter(text) for text in request.query_params.getlist("filter")]
    try:
        matcher = compile_matcher(condition_of(filters)) if filters else None
    except ExpressionInvalid as invalid:
        raise InvalidInput(f"a filter cannot be used: {invalid}") from None
    async with access.session() as connection:
        now = await database_now(connection)
        rows = await fetch_dicts(
            connection, "tocsin.api.protocols/list_open_alarms", {"owners": access.owners, "limit": MAX_SHOWN}
        )
        alarms = [matched_alarm(row) for row in rows]
        suppressions = await Suppressions().of(connection, alarms, now) if alarms else {}
    views = []
    for row, alarm in zip(rows, alarms, strict=True):
        found = suppressions.get(alarm.id)
        is_shown = matcher is None or matcher.matches(alarm.fields)
        if is_shown and _is_wanted(request, found.kind if found else None):
            views.append(alert_view(row, found.key if found else None, now))
    return views


def _is_wanted(request: Request, suppression: str | None) -> bool:
    """By the parameters `active`, `silenced`, `inhibited` and `receiver`."""
    name = {None: "active", "inhibit": "inhibited"}.get(suppression, "silenced")
    receiver = request.query_params.get("receiver", "")
    return request.query_params.get(name, "true") != "false" and receiver in ("", RECEIVER, ".*")


async def list_receivers(request: Request, access: Access) -> Response:
    return JSONResponse([{"name": RECEIVER}])


async def show_status(request: Request, access: Access) -> Response:
    parts = parts_of(access)
    if parts.started_at is None:
        async with access.session() as connection:
            parts.started_at = await database_now(connection)
    return JSONResponse(status_view(parts.started_at, version("tocsin")))


async def show_build(request: Request) -> Response:
    text = (
        "# HELP alertmanager_build_info The version of the API of Alertmanager that is served.\n"
        "# TYPE alertmanager_build_info gauge\n"
        f'alertmanager_build_info{{version="{VERSION}",branch="tocsin",revision=""}} 1\n'
    )
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4")


async def show_health(request: Request) -> Response:
    return PlainTextResponse("OK")


_NO_DATA = "clients ask for it before they authenticate, and the answer has no data"
ROUTES = (
    Route(
        f"{PATH}/api/v2/alerts",
        guarded(Operation.EMIT_EVENT, post_alerts, max_body_bytes=MAX_ALERTS_BYTES),
        methods=["POST"],
    ),
    Route(f"{PATH}/api/v2/alerts", guarded(Operation.VIEW_ALARMS, list_alerts), methods=["GET"]),
    Route(f"{PATH}/api/v2/alerts/groups", guarded(Operation.VIEW_ALARMS, list_groups), methods=["GET"]),
    Route(f"{PATH}/api/v2/receivers", guarded(Operation.VIEW_ALARMS, list_receivers), methods=["GET"]),
    Route(f"{PATH}/api/v2/status", guarded(Operation.VIEW_ALARMS, show_status), methods=["GET"]),
    Route(f"{PATH}/metrics", Public(show_build, because=_NO_DATA), methods=["GET"]),
    Route(f"{PATH}/-/healthy", Public(show_health, because=_NO_DATA), methods=["GET", "HEAD"]),
    Route(f"{PATH}/-/ready", Public(show_health, because=_NO_DATA), methods=["GET", "HEAD"]),
)
