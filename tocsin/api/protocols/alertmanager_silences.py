"""Silences in the API of Alertmanager, for amtool, Karma and Grafana.

Guarantee: adding and expiring are those of the command line, with the same audit row and event. The
author is the caller; the name that a client sends (`createdBy`) is part of the reason. A silence that is
sent with an id replaces that one, as in Alertmanager: the old one ends, and the new one has another id.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rules.suppression.operator import add_silence, expire_silence
from rules.suppression.silence_store import NewSilence, Row, find_silence, list_silences
from timers.working_set import database_now
from tocsin.api.access.permission import Access, guarded
from tocsin.api.protocols.alertmanager import PATH
from tocsin.core.db import Connection
from tocsin.core.errors import Refused
from tocsin.policy import Operation
from tocsin.protocols.alertmanager import PostedSilence, read_silence
from tocsin.protocols.alertmanager_matchers import condition_of, parse_filter
from tocsin.protocols.alertmanager_views import silence_matchers, silence_view

MAX_SILENCE_BYTES = 65_536
_MAX_SHOWN = 1_000


async def get_silences(request: Request, access: Access) -> Response:
    filters = [parse_filter(text) for text in request.query_params.getlist("filter")]
    async with access.session() as connection:
        now = await database_now(connection)
        rows = await list_silences(connection, all=True, limit=_MAX_SHOWN)
    wanted = [row for row in rows if all(one in silence_matchers(row["matcher"]) for one in filters)]
    return JSONResponse([silence_view(row, now) for row in wanted])


async def get_silence(request: Request, access: Access) -> Response:
    async with access.session() as connection:
        row = await _find(connection, request.path_params["id"])
        now = await database_now(connection)
    return JSONResponse(silence_view(row, now))


async def post_silence(request: Request, access: Access) -> Response:
    posted = read_silence(await request.body())
    condition = condition_of([matcher.matcher for matcher in posted.matchers])
    async with access.session() as connection:
        actor = await access.actor(connection)
        replaced = await _find(connection, posted.id) if posted.id else None
        silence = NewSilence(
            condition, max(posted.starts_at, actor.now), posted.ends_at, _reason(posted, actor.who), actor.who
        )
        await add_silence(connection, silence, actor)
        if replaced is not None and replaced["ended_at"] is None and replaced["ends_at"] > actor.now:
            await expire_silence(connection, replaced, actor)
    return JSONResponse({"silenceID": str(silence.id)})


async def delete_silence(request: Request, access: Access) -> Response:
    async with access.session() as connection:
        row = await _find(connection, request.path_params["id"])
        await expire_silence(connection, row, await access.actor(connection))
    return JSONResponse({})


async def _find(connection: Connection, id: str) -> Row:
    """By its whole id: a client of Alertmanager never shortens it."""
    row = await find_silence(connection, id)
    if str(row["id"]) != id.lower():
        raise Refused(f"silence {id!r} is not known", remedy="send its whole id")
    return row


def _reason(posted: PostedSilence, who: str) -> str:
    if not posted.created_by or posted.created_by == who:
        return posted.comment
    return f"{posted.comment} ({posted.created_by})" if posted.comment else posted.created_by


_VIEW, _SILENCE = Operation.VIEW_RULES, Operation.SILENCE_ALARMS
ROUTES = (
    Route(f"{PATH}/api/v2/silences", guarded(_VIEW, get_silences), methods=["GET"]),
    Route(
        f"{PATH}/api/v2/silences",
        guarded(_SILENCE, post_silence, max_body_bytes=MAX_SILENCE_BYTES),
        methods=["POST"],
    ),
    Route(f"{PATH}/api/v2/silence/{{id}}", guarded(_VIEW, get_silence), methods=["GET"]),
    Route(f"{PATH}/api/v2/silence/{{id}}", guarded(_SILENCE, delete_silence), methods=["DELETE"]),
)
