"""The description of the API, served by the API itself: `/openapi.json` and the page of problems."""

from __future__ import annotations

from html import escape

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from tocsin.api.access.permission import Public
from tocsin.api.problems import KINDS, PAGE

_CSP = "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
_REASON = "the description is the same for every instance and has no data"


async def openapi(request: Request) -> Response:
    return JSONResponse(request.app.openapi())


async def problems(request: Request) -> Response:
    rows = "".join(
        f"<h2 id='{name}'>{name}</h2><p>{kind.status.value}: {escape(kind.title)}.</p>"
        for name, kind in KINDS.items()
    )
    page = f"<!doctype html><html lang=en><meta charset=utf-8><title>Problems</title><h1>Problems</h1>{rows}</html>"
    return HTMLResponse(page, headers={"content-security-policy": _CSP})


ROUTES = (
    Route("/openapi.json", Public(openapi, because=_REASON), methods=["GET"]),
    Route(PAGE, Public(problems, because=_REASON), methods=["GET"]),
)
