"""A group of routes, and the check that each of them decides who may use it.

A group has handlers of FastAPI (`router`, in the OpenAPI document below `/v1`), plain Starlette routes
(`routes`, for bytes, streams and the doors of other systems), or both, and a `lifespan` if it needs
something that runs as long as the service. `routes.py` lists the groups.

Guarantee: `guarded_routes` raises for a route without a `Permission`, a `Guarded` or a `Public`
endpoint, so the app does not start with one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from fastapi import APIRouter
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute, Route, WebSocketRoute

from tocsin.api.access.permission import Guarded, GuardedSocket, Permission, Public, SignedIn
from tocsin.api.context import ApiContext
from tocsin.policy import Operation

PREFIX = "/v1"


@dataclass(frozen=True)
class RouteGroup:
    name: str
    router: APIRouter | None = None
    """Handlers below `/v1`."""
    routes: Sequence[BaseRoute] = ()
    """Plain routes, with their whole paths."""
    lifespan: Callable[[ApiContext], AbstractAsyncContextManager[object]] | None = None
    """Entered when the service starts. `ApiContext.parts[name]` holds what it yields."""


@dataclass(frozen=True)
class GuardedRoute:
    """A route and its operation; None if it is public, or about the caller itself."""

    methods: tuple[str, ...]
    path: str
    operation: Operation | None
    is_public: bool = False


def guarded_routes(groups: Sequence[RouteGroup]) -> Iterator[GuardedRoute]:
    """Every route with its operation. `TypeError` for one that decides nothing."""
    for group in groups:
        for route in group.router.routes if group.router is not None else ():
            yield _of_handler(route)
        for route in group.routes:
            yield _of_plain_route(route)


def _of_handler(route: BaseRoute) -> GuardedRoute:
    if not isinstance(route, APIRoute):
        raise TypeError(f"{route!r} of a router is not a handler: add it to `routes` of its group")
    operations = list(_operations(route.dependant))
    if len(operations) != 1:
        raise TypeError(f"the handler of {route.path!r} has {len(operations)} `may(Operation...)`, not one")
    return GuardedRoute(tuple(sorted(route.methods or ())), PREFIX + route.path, operations[0])


def _of_plain_route(route: BaseRoute) -> GuardedRoute:
    if isinstance(route, WebSocketRoute) and isinstance(route.endpoint, GuardedSocket):
        return GuardedRoute(("WEBSOCKET",), route.path, route.endpoint.operation)
    if isinstance(route, Route) and isinstance(route.endpoint, Guarded | Public) and route.methods:
        is_public = isinstance(route.endpoint, Public)
        operation = route.endpoint.operation if isinstance(route.endpoint, Guarded) else None
        return GuardedRoute(tuple(sorted(route.methods)), route.path, operation, is_public)
    raise TypeError(f"{route!r} needs methods, and a `guarded`, `GuardedSocket` or `Public` endpoint")


def _operations(dependant: Dependant) -> Iterator[Operation | None]:
    for dependency in dependant.dependencies:
        if isinstance(dependency.call, Permission):
            yield dependency.call.operation
        elif isinstance(dependency.call, SignedIn):
            yield None
        yield from _operations(dependency)
