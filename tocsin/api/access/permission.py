"""Permission: the operation that a route needs, and the access that a caller gets with it.

A handler of FastAPI declares `access: Annotated[Access, may(Operation.VIEW_ALARMS)]`. A plain route is
`guarded(Operation.SEND_DATA, endpoint)`. Both authenticate, refuse a caller that has the operation for
no owner at all, and give the handler an `Access`:

- `access.owners`: patterns of the owners for which the caller may do it, for the statement
  (`tocsin.owner_matches(owner, %(owners)s)`);
- `access.require(owner)`: refuses one owner. An owner that the caller may not even view raises
  `NotFound`, so that no answer shows that it exists.

Guarantee: default closed. `tocsin.api.route_group` refuses to start with a route that has neither of them
and is not public.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from fastapi import Depends
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from tocsin.api.access.caller import Caller
from tocsin.api.access.credentials import authenticate
from tocsin.api.context import ApiContext, context_of
from tocsin.api.limits import allow_body
from tocsin.api.problems import response_of
from tocsin.core.audit import Actor, acting
from tocsin.core.db import Connection
from tocsin.core.errors import Forbidden, NotFound, TocsinError
from tocsin.policy import RULES, Operation, decide
from tocsin.policy import Scope as OperationScope

VIA = "api"
LENT_SESSION = "tocsin.session"
"""Key of a scope: the session of a transaction that began outside of the handler (`idempotency.py`)."""
# The operation that shows whether something of an owner exists, by the operation that is asked for.
_VIEW = {
    Operation.ACKNOWLEDGE_ALARM: Operation.VIEW_ALARMS,
    Operation.SNOOZE_ALARM: Operation.VIEW_ALARMS,
    Operation.RESOLVE_ALARM: Operation.VIEW_ALARMS,
    Operation.PUT_SCHEDULE: Operation.VIEW_SCHEDULES,
    Operation.PAUSE_SCHEDULE: Operation.VIEW_SCHEDULES,
    Operation.RUN_SCHEDULE: Operation.VIEW_SCHEDULES,
    Operation.CANCEL_SCHEDULE: Operation.VIEW_SCHEDULES,
    Operation.RETRY_RUN: Operation.VIEW_ACTIONS,
    Operation.CANCEL_RUN: Operation.VIEW_ACTIONS,
    Operation.SEND_DATA: Operation.VIEW_SERIES,
    Operation.EMIT_EVENT: Operation.VIEW_EVENTS,
}


@dataclass(frozen=True)
class Access:
    """A caller with one operation."""

    context: ApiContext
    caller: Caller
    operation: Operation
    lent: Connection | None = None
    via: str = VIA
    """The `via` of its changes in the audit."""

    @property
    def owners(self) -> list[str]:
        """Patterns of the owners for which the caller may do the operation."""
        return self.owners_of(self.operation)

    @property
    def visible_owners(self) -> list[str]:
        """Patterns of the owners that the caller may view where this operation applies."""
        return self.owners_of(_VIEW.get(self.operation, self.operation))

    def owners_of(self, operation: Operation) -> list[str]:
        principal = self.caller.principal
        if RULES[operation][1] is OperationScope.INSTANCE:
            return ["*"] if decide(principal, operation).allowed else []
        roles = RULES[operation][0]
        return sorted({g.pattern for g in principal.grants if g.role == "admin" or g.role in roles})

    def require(self, owner: str, noun: str = "owner") -> None:
        """Refuse the operation for an owner. `NotFound` if the caller may not view it either."""
        decision = decide(self.caller.principal, self.operation, owner)
        if decision.allowed:
            return
        view = _VIEW.get(self.operation, self.operation)
        if not decide(self.caller.principal, view, owner).allowed:
            raise NotFound(f"there is no {noun} {owner!r}", remedy="`GET /v1/me` lists your grants")
        raise Forbidden(decision.reason, remedy="ask an administrator for a grant")

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Connection]:
        if self.lent is not None:
            yield self.lent
            return
        async with self.context.session() as connection:
            yield connection

    async def actor(self, connection: Connection) -> Actor:
        """The author of a change, for the functions that the command line calls too."""
        return await acting(connection, self.caller.name, self.via)


async def access_of(connection: HTTPConnection, operation: Operation) -> Access:
    """Authenticate, and refuse a caller that has the operation for no owner."""
    access = Access(
        context_of(connection),
        await authenticate(connection),
        operation,
        connection.scope.get(LENT_SESSION),
    )
    check_operation(access)
    return access


def check_operation(access: Access) -> None:
    if access.owners:
        return
    roles, scope = RULES[access.operation]
    allowed = ", ".join((*roles, "admin"))
    where = "for the instance (pattern *)" if scope is OperationScope.INSTANCE else "for an owner"
    raise Forbidden(
        f"{access.caller.name!r} may not {access.operation}: it takes one of {allowed}, {where}",
        remedy="`GET /v1/me` lists your grants; ask an administrator for one",
    )


class Permission:
    """The dependency of a handler. `tocsin.api.route_group` finds it by its class."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation

    async def __call__(self, connection: HTTPConnection) -> Access:
        return await access_of(connection, self.operation)

    # FastAPI resolves annotations by the globals of a function, which an instance does not have.
    __globals__ = globals()


def may(operation: Operation) -> Any:
    """The dependency of a handler that needs an operation."""
    return Depends(Permission(operation))


class SignedIn:
    """The dependency of a handler that any caller with valid credentials may use, for itself."""

    async def __call__(self, connection: HTTPConnection) -> Caller:
        return await authenticate(connection)

    __globals__ = globals()


def signed_in() -> Any:
    """The dependency of a handler about the caller itself."""
    return Depends(SignedIn())


Endpoint = Callable[[Request, Access], Awaitable[Response]]


class Guarded:
    """The endpoint of a plain route that needs an operation, as an ASGI app.

    `authenticated` finds the caller where a client of another system sends its credentials elsewhere
    than in the Authorization header, such as in the path.
    """

    def __init__(
        self,
        operation: Operation,
        endpoint: Endpoint,
        *,
        max_body_bytes: int | None = None,
        authenticated: Callable[[Request], Awaitable[Caller]] = authenticate,
    ) -> None:
        self.operation = operation
        self._endpoint = endpoint
        self._max_body_bytes = max_body_bytes
        self._authenticated = authenticated

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        access = Access(
            context_of(request),
            await self._authenticated(request),
            self.operation,
            scope.get(LENT_SESSION),
        )
        check_operation(access)
        if self._max_body_bytes is not None:
            allow_body(request, self._max_body_bytes)
        response = await self._endpoint(request, access)
        await response(scope, receive, send)


def guarded(operation: Operation, endpoint: Endpoint, **options: Any) -> Guarded:
    """The endpoint of a plain route, for a Starlette `Route`."""
    return Guarded(operation, endpoint, **options)


class GuardedSocket:
    """The endpoint of a WebSocket route that needs an operation. A refusal is the answer to the upgrade."""

    def __init__(
        self, operation: Operation, endpoint: Callable[[WebSocket, Access], Awaitable[None]]
    ) -> None:
        self.operation = operation
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        socket = WebSocket(scope, receive, send)
        try:
            access = await access_of(socket, self.operation)
        except TocsinError as error:
            await socket.send_denial_response(response_of(error))
            return
        await self._endpoint(socket, access)


class Public:
    """The endpoint of a plain route that needs no credentials, with the reason why."""

    def __init__(self, endpoint: Callable[[Request], Awaitable[Response]], *, because: str) -> None:
        self.because = because
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        response = await self._endpoint(request)
        await response(scope, receive, send)
