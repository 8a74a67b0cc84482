"""`GET /feeds/{token}/schedules.ics`: the coming fires of schedules, for calendar programs.

At most `_MAX_FIRES` fires of the owners that the token may view. The next fire of each schedule comes before
the second one of any. The token is in the path, because calendar programs send no headers.
"""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from timers.coming_fires import coming_fires
from timers.working_set import database_now
from tocsin.api.access.path_token import authenticate_by_path
from tocsin.api.access.permission import Access, guarded
from tocsin.core.db import fetch_dicts
from tocsin.policy import Operation
from tocsin.protocols.calendar_feed import FeedEntry, feed

_MAX_FIRES = 500


async def show_schedules(request: Request, access: Access) -> Response:
    async with access.session() as connection:
        now = await database_now(connection)
        rows = await fetch_dicts(
            connection,
            "tocsin.api.protocols/list_coming_schedules",
            {"owners": access.owners, "limit": _MAX_FIRES},
        )
    titles = {(row["owner"], row["name"]): row["title"] or "" for row in rows}
    # Recurrences of others may take milliseconds each.
    fires = await asyncio.to_thread(coming_fires, rows, _MAX_FIRES)
    entries = [
        FeedEntry(fire.schedule, fire.owner, fire.at, titles[fire.owner, fire.schedule], fire.note)
        for fire in fires
    ]
    text = feed(entries, "Tocsin schedules", now)
    headers = {"cache-control": "private, max-age=60", "referrer-policy": "no-referrer"}
    return Response(text, media_type="text/calendar; charset=utf-8", headers=headers)


ROUTES = (
    Route(
        "/feeds/{token}/schedules.ics",
        guarded(Operation.VIEW_SCHEDULES, show_schedules, authenticated=authenticate_by_path),
        methods=["GET"],
    ),
)
