"""`GET /v1/live`: the feed as server-sent events.

Each record is one message: `id` is its seq, `data` its CloudEvent. A browser that reconnects sends the
last id as `Last-Event-ID`, and continues after it. `event: resync` means that records were left out, and
`event: end` that the server closes the feed, with the reason. A heartbeat is an id without data: it moves
the position of the browser, and calls no handler.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tocsin.api.access.permission import Access
from tocsin.api.limits import lift_time_limit
from tocsin.api.live import door as doors
from tocsin.api.live.door import CredentialCheck, LiveDoor, door_of, selection_of, seq_of
from tocsin.api.live.selection import Selection
from tocsin.api.live.subscription import FeedEnded, LiveBatch, Resync, Subscription
from tocsin.core.service import end_tasks

_HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store",
    # nginx would collect the messages.
    "x-accel-buffering": "no",
}


async def stream_records(request: Request, access: Access) -> Response:
    after = seq_of(request.headers.get("last-event-id") or request.query_params.get("after"), "the position")
    selection = selection_of(access, request.query_params.get("query", ""))
    door = door_of(access.context)
    await door.feed.wait_until_started()
    stack = AsyncExitStack()
    stack.enter_context(door.admit(access))
    return EventStream(door, stack, selection, after, CredentialCheck(request, access))


class EventStream(Response):
    """Writes messages as fast as the client reads them, and no faster."""

    def __init__(
        self,
        door: LiveDoor,
        stack: AsyncExitStack,
        selection: Selection,
        after: int | None,
        check: CredentialCheck,
    ) -> None:
        super().__init__(headers=_HEADERS)
        del self.headers["content-length"]
        self._door = door
        self._stack = stack
        self._selection = selection
        self._after = after
        self._check = check

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._stack:
            lift_time_limit(Request(scope))
            subscription = self._stack.enter_context(self._door.feed.subscribe(self._selection, self._after))
            leaving = asyncio.create_task(_end_when_left(receive, subscription))
            try:
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                async for chunk in self._chunks(subscription):
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                await send({"type": "http.response.body", "body": b""})
            finally:
                await end_tasks([leaving])

    async def _chunks(self, subscription: Subscription) -> AsyncIterator[bytes]:
        # The first bytes tell the client that the feed is open, and where it begins.
        yield b"retry: 1000\nid: %d\n\n" % subscription.position
        while True:
            answer = await subscription.next(doors.HEARTBEAT_S)
            reason = await self._check.run(subscription)
            if reason is not None:
                answer = FeedEnded(reason)
            yield chunk_of(answer)
            if isinstance(answer, FeedEnded):
                return


def chunk_of(answer: LiveBatch | Resync | FeedEnded) -> bytes:
    if isinstance(answer, Resync):
        data = {"after": answer.after, "last": answer.last, "reason": answer.reason}
        return b"event: resync\nid: %d\ndata: %b\n\n" % (answer.last, json.dumps(data).encode())
    if isinstance(answer, FeedEnded):
        return b"event: end\ndata: %b\n\n" % json.dumps({"reason": answer.reason}).encode()
    if not answer.records:
        return b"id: %d\n\n" % answer.position
    return b"".join(b"id: %d\ndata: %b\n\n" % (record.seq, record.body) for record in answer.records)


async def _end_when_left(receive: Receive, subscription: Subscription) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    subscription.end("the client left")
