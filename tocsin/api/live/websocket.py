"""`/v1/ws`: calls and subscriptions over one WebSocket.

A message of the client is `{"id": 1, "call": "list", "args": {}}`. Its answer has the same `id`, and
`result`, or `problem` as RFC 9457 has it. `subscribe` takes `query` and `after`; its records arrive as
`{"subscription": 1, "record": {...}}` with the id of the call, its gaps as
`{"subscription": 1, "resync": {...}}`. `unsubscribe` takes the id. When nothing happens,
`{"heartbeat": SEQ}` is sent.

Guarantees: one call at a time and `MAX_SUBSCRIPTIONS` subscriptions, so a socket costs bounded memory.
The server closes it with the reason (1008, or 1001 when it stops), also when its credentials end.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import ExitStack
from typing import Annotated, Any

import structlog
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError
from pydantic_core import to_json
from starlette.websockets import WebSocket, WebSocketDisconnect

from schemas.error_text import error_text
from tocsin.api.access.permission import Access
from tocsin.api.live import door as doors
from tocsin.api.live.calls import CALLS, NoArguments
from tocsin.api.live.door import CredentialCheck, door_of, selection_of
from tocsin.api.live.subscription import FeedEnded, LiveBatch, Resync, Subscription
from tocsin.api.problems import response_of
from tocsin.core.errors import InvalidInput, Refused, TocsinError
from tocsin.core.service import end_tasks

MAX_SUBSCRIPTIONS = 16
MAX_MESSAGE_CHARACTERS = 65_536
_POLICY = 1008
_GOING_AWAY = 1001
_log = structlog.get_logger()
CallId = int | Annotated[str, Field(max_length=100)]


class SocketCall(BaseModel):
    model_config = ConfigDict(extra="forbid")

    id: CallId
    call: str = Field(max_length=50)
    args: dict[str, JsonValue] = Field(default_factory=dict)


class SubscribeArguments(NoArguments):
    query: str = Field(default="", max_length=1000)
    after: int | None = Field(default=None, ge=0, le=2**63 - 1)


class UnsubscribeArguments(NoArguments):
    subscription: CallId


async def serve_socket(socket: WebSocket, access: Access) -> None:
    door = door_of(access.context)
    try:
        await door.feed.wait_until_started()
        admitted = ExitStack()
        admitted.enter_context(door.admit(access))
    except TocsinError as error:
        await socket.send_denial_response(response_of(error))
        return
    with admitted:
        await socket.accept()
        await LiveSocket(socket, access).run()


class LiveSocket:
    def __init__(self, socket: WebSocket, access: Access) -> None:
        self._socket = socket
        self._access = access
        self._feed = door_of(access.context).feed
        self._check = CredentialCheck(socket, access)
        self._following: dict[int | str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        reading = asyncio.create_task(self._read_calls())
        keeping = asyncio.create_task(self._keep_alive())
        try:
            await asyncio.wait({reading, keeping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await end_tasks([reading, keeping, *self._following.values()])
        reason = keeping.result() if keeping.done() and not keeping.cancelled() else None
        if reason is not None:
            code = _GOING_AWAY if self._access.context.stopping.is_set() else _POLICY
            await self._socket.close(code, reason)
        elif not reading.cancelled():
            reading.result()

    async def _keep_alive(self) -> str:
        """Send heartbeats until the credentials end or the API stops; returns the reason."""
        with self._feed.subscribe(selection_of(self._access, "type:_"), None) as idle:
            while True:
                answer = await idle.next(doors.HEARTBEAT_S)
                if isinstance(answer, FeedEnded):
                    return answer.reason
                reason = await self._check.run(idle)
                if reason is not None:
                    return reason
                await self._send({"heartbeat": idle.position})

    async def _read_calls(self) -> None:
        while True:
            try:
                text = await self._socket.receive_text()
            except (WebSocketDisconnect, KeyError):  # it left, or sent bytes
                return
            await self._send(await self._answer(text))

    async def _answer(self, text: str) -> dict[str, Any]:
        id: int | str | None = None
        try:
            message = _parsed(text)
            id = message.id
            return {"id": id, "result": await self._call(message)}
        except Exception as error:
            if not isinstance(error, TocsinError):
                _log.exception("call failed", error=error)
            problem = json.loads(bytes(response_of(error).body))
            return {"id": id, "problem": problem}

    async def _call(self, message: SocketCall) -> Any:
        if message.call == "subscribe":
            return await self._subscribe(message.id, _arguments(SubscribeArguments, message))
        if message.call == "unsubscribe":
            return await self._unsubscribe(_arguments(UnsubscribeArguments, message).subscription)
        if message.call not in CALLS:
            known = ", ".join((*CALLS, "subscribe", "unsubscribe"))
            raise InvalidInput(f"unknown call {message.call!r}", remedy=f"use one of {known}")
        model, call = CALLS[message.call]
        arguments = _arguments(model, message)
        async with self._access.session() as connection:
            return await call(connection, self._access, arguments)

    async def _subscribe(self, id: int | str, arguments: SubscribeArguments) -> dict[str, Any]:
        if id in self._following:
            raise Refused(f"{id!r} is the id of a subscription", remedy="use another id")
        if len(self._following) >= MAX_SUBSCRIPTIONS:
            raise Refused(f"the socket has {MAX_SUBSCRIPTIONS} subscriptions", remedy="end one of them")
        selection = selection_of(self._access, arguments.query)
        stack = ExitStack()
        subscription = stack.enter_context(self._feed.subscribe(selection, arguments.after))
        after = subscription.position
        self._following[id] = asyncio.create_task(self._follow(id, subscription, stack))
        return {"subscription": id, "after": after}

    async def _unsubscribe(self, id: int | str) -> dict[str, Any]:
        task = self._following.pop(id, None)
        if task is None:
            raise Refused(f"there is no subscription {id!r}", remedy="send the id of its call")
        await end_tasks([task])
        return {"subscription": id}

    async def _follow(self, id: int | str, subscription: Subscription, stack: ExitStack) -> None:
        with stack:
            while True:
                answer = await subscription.next(doors.HEARTBEAT_S)
                if isinstance(answer, FeedEnded):
                    return
                if isinstance(answer, Resync):
                    resync = {"after": answer.after, "last": answer.last, "reason": answer.reason}
                    await self._send({"subscription": id, "resync": resync})
                else:
                    await self._send_records(id, answer)

    async def _send_records(self, id: int | str, batch: LiveBatch) -> None:
        label = json.dumps(id)
        for record in batch.records:
            await self._socket.send_text(f'{{"subscription":{label},"record":{record.body.decode()}}}')

    async def _send(self, message: dict[str, Any]) -> None:
        await self._socket.send_text(to_json(message).decode())


def _parsed(text: str) -> SocketCall:
    if len(text) > MAX_MESSAGE_CHARACTERS:
        raise InvalidInput(
            f"the message has {len(text)} characters", remedy=f"send at most {MAX_MESSAGE_CHARACTERS}"
        )
    try:
        return SocketCall.model_validate_json(text)
    except ValidationError as error:
        raise InvalidInput(
            f"the message is not a call: {error_text(error, 'it')}",
            remedy='send {"id": 1, "call": "list", "args": {}}',
        ) from None


def _arguments(model: type[Any], message: SocketCall) -> Any:
    try:
        return model.model_validate(message.args)
    except ValidationError as error:
        raise InvalidInput(f"args of {message.call!r}: {error_text(error, 'args')}") from None
