"""The endpoint of a page or an act: authenticates, authorises, opens a session, and renders errors as pages.

Guarantees: the decision is the one of the API (`Guarded`), so a route without an operation cannot exist.
An act comes from our own pages (`cross_site.py`), because the console is used with the cookie of a session.
A page reads on one session, in autocommit mode.

On failure: the page of an error has the same status, message and remedy as the problem of the API.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import structlog
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import Receive, Scope, Send

from timers.working_set import database_now
from tocsin.api.access.permission import Access, Guarded
from tocsin.api.access.secret_text import hide_secrets
from tocsin.api.problems import Problem, response_of
from tocsin.console.frame import read_frame
from tocsin.console.preferences import preferences_of
from tocsin.console.render import page_headers, render
from tocsin.console.visit import Visit
from tocsin.policy import Operation

_log = structlog.get_logger()
VIA = "console"
Screen = Callable[[Visit], Awaitable[Response]]


class ConsolePage(Guarded):
    """A `Guarded` whose errors are pages."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        except Exception as error:
            response = error_page(Request(scope), error)
            await response(scope, receive, send)


def console_page(operation: Operation, screen: Screen) -> ConsolePage:
    """The endpoint of a screen, or of an act, for a Starlette `Route`."""

    async def endpoint(request: Request, access: Access) -> Response:
        async with visiting(request, access) as visit:
            return await screen(visit)

    return ConsolePage(operation, endpoint)


@asynccontextmanager
async def visiting(request: Request, access: Access) -> AsyncIterator[Visit]:
    """The visit of a request that is authorised, with a session for the length of the block."""
    async with access.session() as connection:
        access = replace(access, lent=connection, via=VIA)
        yield Visit(
            request,
            access,
            await database_now(connection),
            preferences_of(request),
            await read_frame(access, request.url.path),
            new_nonce(),
        )


def error_page(request: Request, error: Exception) -> Response:
    """The page of an error, with the status, message and remedy of its problem."""
    answer = response_of(error)
    problem = Problem.model_validate_json(bytes(answer.body))
    if problem.remedy and "/v1/" in problem.remedy:
        problem.remedy = None  # it names a request of the API, which a person does not make
    if problem.status == 500:
        _log.exception("page failed", method=request.method, path=hide_secrets(request.url.path), error=error)
    nonce = new_nonce()
    facts: dict[str, Any] = {"problem": problem, "theme": preferences_of(request).theme, "nonce": nonce}
    headers = page_headers(nonce)
    if "retry-after" in answer.headers:
        headers["retry-after"] = answer.headers["retry-after"]
    return HTMLResponse(render("error.html", facts), problem.status, headers)


def new_nonce() -> str:
    return secrets.token_urlsafe(18)
