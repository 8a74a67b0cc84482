"""Limits of one request: bytes of its body, and time until its answer is sent.

Guarantees: a body is read up to the limit and no further, whatever Content-Length claims; a larger one
is 413. A request that is not answered in time is cancelled, with its statement in Postgres, and is 408
if its body did not arrive, otherwise 503. Head and connections are bounded in `protocol.py`.

A route may accept a larger body (`allow_body`), and one that streams lifts the time limit
(`lift_time_limit`); its own code then bounds what a slow client costs.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tocsin.api.problems import ProblemRaised, problem_response

_KEY = "tocsin.limits"


@dataclass
class RequestLimits:
    max_body_bytes: int
    timeout: asyncio.Timeout
    received_bytes: int = 0
    body_is_complete: bool = False
    waits_for_body: bool = False
    response_started: bool = False


class LimitRequests:
    """ASGI middleware around the whole app."""

    def __init__(self, app: ASGIApp, *, max_body_bytes: int, time_limit_s: float) -> None:
        self._app = app
        self._max_body_bytes = max_body_bytes
        self._time_limit_s = time_limit_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limits: RequestLimits | None = None
        try:
            async with asyncio.timeout(self._time_limit_s) as timeout:
                limits = RequestLimits(self._max_body_bytes, timeout)
                scope[_KEY] = limits
                await self._app(scope, _counted(limits, receive), _noted(limits, send))
        except TimeoutError:
            if limits is None or limits.response_started:
                raise
            kind = "too-slow" if limits.waits_for_body else "unavailable"
            response = problem_response(
                kind,
                f"the request was not answered within {self._time_limit_s:g} s",
                remedy="try again, with less at once",
                headers={"connection": "close"},
            )
            await response(scope, receive, send)


def _counted(limits: RequestLimits, receive: Receive) -> Receive:
    async def receive_counted() -> Message:
        limits.waits_for_body = not limits.body_is_complete
        message = await receive()
        limits.waits_for_body = False
        if message["type"] == "http.request":
            limits.received_bytes += len(message.get("body", b""))
            limits.body_is_complete = not message.get("more_body", False)
            if limits.received_bytes > limits.max_body_bytes:
                raise _too_large(limits)
        return message

    return receive_counted


def _noted(limits: RequestLimits, send: Send) -> Send:
    async def send_noted(message: Message) -> None:
        limits.response_started = limits.response_started or message["type"] == "http.response.start"
        await send(message)

    return send_noted


def _too_large(limits: RequestLimits) -> ProblemRaised:
    return ProblemRaised(
        "too-large",
        f"the body is larger than {limits.max_body_bytes:,} bytes",
        remedy="send it in parts",
        # The rest of the body is not read.
        headers={"connection": "close"},
    )


def allow_body(connection: HTTPConnection, max_body_bytes: int) -> None:
    """Let this request have a larger body, or only a smaller one."""
    limits: RequestLimits = connection.scope[_KEY]
    limits.max_body_bytes = max_body_bytes


def lift_time_limit(connection: HTTPConnection) -> None:
    """Let this request last as long as it streams."""
    limits: RequestLimits = connection.scope[_KEY]
    limits.timeout.reschedule(None)
