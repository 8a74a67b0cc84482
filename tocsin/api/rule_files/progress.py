"""The answer to a request for rule files: its result, or a stream with its progress.

Guarantee: a client that leaves ends the process of its request. A client that accepts `text/event-stream`
gets `event: progress` with the percentage, and at the end `event: result` with what the answer would have
been, or `event: problem` with the problem document.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tocsin.api.limits import lift_time_limit
from tocsin.api.problems import ProblemRaised, response_of
from tocsin.api.rule_files.command import ReportPercent
from tocsin.core.service import end_tasks

MEDIA_TYPE = "text/event-stream"
Work = Callable[[ReportPercent | None], Coroutine[Any, Any, Any]]
_HEADERS = {
    "content-type": f"{MEDIA_TYPE}; charset=utf-8",
    "cache-control": "no-store",
    "x-accel-buffering": "no",
}
_PING_S = 10.0


def wants_progress(request: Request) -> bool:
    return MEDIA_TYPE in request.headers.get("accept", "")


async def until_left(request: Request, work: Work) -> Any:
    """The result of the work, which ends when the client leaves."""
    working = asyncio.create_task(work(None))
    leaving = asyncio.create_task(_left(request.receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ProblemRaised("too-slow", "the client left", remedy="wait for the answer")
        return working.result()
    finally:
        await end_tasks([working, leaving])


class ProgressStream(Response):
    """Runs the work while it streams."""

    def __init__(self, work: Work) -> None:
        super().__init__(headers=_HEADERS)
        del self.headers["content-length"]
        self._work = work
        self._percent = 0
        self._moved = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        lift_time_limit(Request(scope))
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        working = asyncio.create_task(self._work(self._report))
        leaving = asyncio.create_task(_left(receive))
        try:
            while not (working.done() or leaving.done()):
                await send(_chunk("progress", {"percent": self._percent}))
                await self._next({working, leaving})
            if working.done():
                await send(_last_chunk(working))
                await send({"type": "http.response.body", "body": b""})
        finally:
            await end_tasks([working, leaving])

    async def _next(self, tasks: set[asyncio.Task[Any]]) -> None:
        """Wait until more is done, for a while at most: a proxy would cut an answer without bytes."""
        moving = asyncio.create_task(self._moved.wait())
        try:
            await asyncio.wait({*tasks, moving}, timeout=_PING_S, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await end_tasks([moving])
        self._moved.clear()

    def _report(self, percent: int) -> None:
        self._percent = percent
        self._moved.set()


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _last_chunk(working: asyncio.Task[Any]) -> dict[str, Any]:
    try:
        return _chunk("result", working.result())
    except Exception as error:
        return _chunk("problem", json.loads(bytes(response_of(error).body)))


def _chunk(event: str, data: Any) -> dict[str, Any]:
    body = f"event: {event}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()
    return {"type": "http.response.body", "body": body, "more_body": True}
