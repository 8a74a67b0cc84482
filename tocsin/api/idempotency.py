"""`Idempotency-Key`: a write that is sent again has its effect once, and the same answer.

Guarantees: the answer is stored in the transaction of the effect, so after a crash at any moment either
both exist or neither does. The same key of the same caller with the same request gets the first answer,
with `Idempotency-Replayed: true`; with another request it is 422; while the first is under way it is 409.
Only answers that succeed are stored, for a day.

How: the middleware opens the transaction and lends its session to the handler (`Access.session`), whose own
transactions become savepoints. No handler has to know of it.

A handler whose work is not in Postgres, or takes longer than a session may be idle, is left out
(`_OWN`): it has a key of its own, or calls `store_once` itself.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg
from psycopg.types.json import Json
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tocsin.api.access.caller import Caller
from tocsin.api.access.credentials import authenticate
from tocsin.api.access.permission import LENT_SESSION
from tocsin.api.context import ApiContext
from tocsin.api.problems import ProblemRaised, response_of
from tocsin.core.db import Connection, fetch_one
from tocsin.core.errors import Refused

HEADER = "idempotency-key"
_METHODS = ("POST", "PUT", "PATCH", "DELETE")
_KEY = re.compile(r"[\x21-\x7e]{1,200}")
_KEPT_HEADERS = ("content-type", "etag", "location")
# The answer of the first has a secret, which is stored nowhere. Rules are applied by a process of their own.
_SECRET = re.compile(r"/v1/(tokens|sessions)\b.*")
_OWN = re.compile(r"/v1/rules:.*")


class IdempotentWrites:
    """ASGI middleware around the handlers, inside of the limits."""

    def __init__(self, app: ASGIApp, context: ApiContext) -> None:
        self._app = app
        self._context = context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = _key_of(scope)
        if key is None or _OWN.fullmatch(scope["path"]):
            await self._app(scope, receive, send)
            return
        request = Request({**scope, "app": self._app}, receive)
        try:
            check_key(key)
            if _SECRET.fullmatch(scope["path"]):
                raise ProblemRaised(
                    "invalid",
                    f"{scope['path']!r} takes no Idempotency-Key",
                    remedy="its answer is a secret that is not stored; send the request without the header",
                )
            caller = await authenticate(request)
            body = await request.body()

            async def respond(connection: Connection) -> Response:
                return await _collect(self._app, {**scope, LENT_SESSION: connection}, body, receive)

            async with self._context.session() as connection:
                response = await store_once(connection, caller, key, _digest(scope, body), respond)
        except Exception as error:
            response = response_of(error)
        await response(scope, receive, send)


async def store_once(
    connection: Connection,
    caller: Caller,
    key: str,
    digest: bytes,
    respond: Callable[[Connection], Awaitable[Response]],
) -> Response:
    """The first answer under the key, or the one of `respond`, stored with its effect if it succeeds."""
    names = {"caller": f"{caller.credential}:{caller.name}", "key": key, "digest": digest}
    response: Response | None = None
    async with connection.transaction():
        outcome, status, headers, body = await fetch_one(connection, "tocsin.api/find_answer", names)
        if outcome == "replayed":
            return Response(bytes(body), status, {**headers, "idempotency-replayed": "true"})
        if outcome != "new":
            raise _refusal(outcome, key)
        response = await respond(connection)
        if not 200 <= response.status_code < 300:
            raise psycopg.Rollback
        kept = {name: response.headers[name] for name in _KEPT_HEADERS if name in response.headers}
        stored = {
            **names,
            "status": response.status_code,
            "headers": Json(kept),
            "body": bytes(response.body),
        }
        await fetch_one(connection, "tocsin.api/keep_answer", stored)
    return response


def check_key(key: str) -> None:
    if not _KEY.fullmatch(key):
        raise ProblemRaised(
            "invalid",
            f"Idempotency-Key is {key[:40]!r}",
            remedy="send 1 to 200 visible ASCII characters, such as a new UUID for each write",
        )


def _refusal(outcome: str, key: str) -> Exception:
    if outcome == "under-way":
        return Refused(f"a request with the Idempotency-Key {key!r} is under way", remedy="try again")
    return ProblemRaised(
        "invalid",
        f"the Idempotency-Key {key!r} was used for another request",
        remedy="use a new key for each write; repeat a key only with the same method, path and body",
    )


def _key_of(scope: Scope) -> str | None:
    if scope["type"] != "http" or scope["method"] not in _METHODS:
        return None
    return next(
        (value.decode("latin-1") for name, value in scope["headers"] if name == HEADER.encode()), None
    )


def _digest(scope: Scope, body: bytes) -> bytes:
    head = f"{scope['method']} {scope['path']}?{scope['query_string'].decode('latin-1')}\n"
    return hashlib.sha256(head.encode() + body).digest()


async def _collect(app: ASGIApp, scope: Scope, body: bytes, receive: Receive) -> Response:
    """The whole response of the app to a request whose body was read."""
    messages: list[Message] = []
    is_read = False

    async def receive_body() -> Message:
        nonlocal is_read
        if is_read:
            return await receive()
        is_read = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def keep(message: Message) -> None:
        messages.append(message)

    await app(scope, receive_body, keep)
    start: dict[str, Any] = dict(messages[0])
    content = b"".join(message.get("body", b"") for message in messages[1:])
    response = Response(content, start["status"])
    response.raw_headers = start["headers"]
    return response
