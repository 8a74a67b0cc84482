"""`/healthz`: the process answers. `/readyz`: it can serve, because Postgres answers and it does not stop.

An orchestrator restarts a process without `/healthz`, and sends no requests to one without `/readyz`. So
an outage of Postgres restarts nothing. Neither shows a reason to clients without credentials.
"""

from __future__ import annotations

import asyncio

import psycopg
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from migrations.runner import refuse_unmigrated
from tocsin.api.access.permission import Public
from tocsin.api.context import context_of
from tocsin.core.errors import TocsinError

_READY_WITHIN_S = 3.0


async def healthz(request: Request) -> Response:
    return PlainTextResponse("ok\n", headers={"cache-control": "no-store"})


async def readyz(request: Request) -> Response:
    context = context_of(request)
    headers = {"cache-control": "no-store"}
    if context.stopping.is_set():
        return PlainTextResponse("not ready: it is stopping\n", 503, headers)
    try:
        async with asyncio.timeout(_READY_WITHIN_S), context.session() as connection:
            await refuse_unmigrated(connection)
    except (psycopg.Error, TocsinError, TimeoutError, OSError):
        return PlainTextResponse("not ready: `tocsin doctor` has the reason\n", 503, headers)
    return PlainTextResponse("ready\n", headers=headers)


_PROBES = "probes of orchestrators have no credentials, and the answer has no data"
ROUTES = (
    Route("/healthz", Public(healthz, because=_PROBES), methods=["GET"]),
    Route("/readyz", Public(readyz, because=_PROBES), methods=["GET"]),
)
