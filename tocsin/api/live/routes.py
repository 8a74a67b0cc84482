"""The routes of the live feed, and the feed itself for as long as the service runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field, JsonValue
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute

from tocsin.api.access.permission import Access, GuardedSocket, guarded, may
from tocsin.api.context import ApiContext
from tocsin.api.live.door import NAME, LiveDoor
from tocsin.api.live.feed import LiveFeed
from tocsin.api.live.long_poll import MAX_RECORDS, MAX_WAIT_S, read_records
from tocsin.api.live.query import MAX_LENGTH
from tocsin.api.live.sse import stream_records
from tocsin.api.live.websocket import serve_socket
from tocsin.api.route_group import RouteGroup
from tocsin.core.service import Service, end_tasks, running
from tocsin.policy import Operation

router = APIRouter(tags=["live"])


class RecordsPage(BaseModel):
    items: list[dict[str, JsonValue]] = Field(description="CloudEvents, as in the record stream.")
    after: int = Field(description="The position to send as `after` next time.")


@router.get("/records", summary="Records after a position, at once or as soon as there is one")
async def follow_records(
    request: Request,
    access: Annotated[Access, may(Operation.VIEW_EVENTS)],
    after: Annotated[int, Query(ge=0, le=2**63 - 1, description="The seq of the last record you have.")],
    wait: Annotated[float, Query(ge=0, le=MAX_WAIT_S, description="Seconds to wait for a record.")] = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_RECORDS)] = 100,
    query: Annotated[str, Query(max_length=MAX_LENGTH, description="Tokens, such as `type:alarm-*`.")] = "",
) -> RecordsPage:
    response: Response = await read_records(
        request, access, after=after, wait_s=wait, limit=limit, query=query
    )
    return response  # type: ignore[return-value] # the bodies are JSON already


@asynccontextmanager
async def serve_feed(context: ApiContext) -> AsyncIterator[LiveDoor]:
    feed = LiveFeed(context.settings, context.sessions)
    async with running(Service(NAME, feed.run)):
        draining = asyncio.create_task(_end_with(context, feed))
        try:
            yield LiveDoor(feed)
        finally:
            await end_tasks([draining])


async def _end_with(context: ApiContext, feed: LiveFeed) -> None:
    await context.stopping.wait()
    feed.end("the API stops")


GROUP = RouteGroup(
    NAME,
    router=router,
    routes=(
        Route("/v1/live", guarded(Operation.VIEW_EVENTS, stream_records), methods=["GET"]),
        WebSocketRoute("/v1/ws", GuardedSocket(Operation.VIEW_EVENTS, serve_socket)),
    ),
    lifespan=serve_feed,
)
