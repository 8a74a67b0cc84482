"""The description of the API, served by the API itself and without any other host.

`/openapi.json` is the document, `/docs` a page with all operations, `/docs/problems` the kinds of errors.
The pages are written from the document and the code, so they cannot differ from them. They have no script.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tocsin.api.access.permission import Public
from tocsin.api.problems import KINDS, PAGE

_HEADERS = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "x-content-type-options": "nosniff",
}
_REASON = "the description is the same for every instance and has no data"
_NO_DATA = {"cache-control": "max-age=300"}


async def openapi(request: Request) -> Response:
    return JSONResponse(request.app.openapi(), headers=_NO_DATA)


async def operations(request: Request) -> Response:
    return _page("Operations", "".join(_operations(request.app.openapi())))


async def problems(request: Request) -> Response:
    rows = "".join(
        f"<h2 id='{name}'>{name}</h2><p>{kind.status.value}: {escape(kind.title)}.</p>"
        for name, kind in KINDS.items()
    )
    return _page("Problems", rows)


async def home(request: Request) -> Response:
    return RedirectResponse("/docs", 302)


def _page(title: str, body: str) -> Response:
    targets = {"/docs": "Operations", "/docs/problems": "Problems", "/openapi.json": "OpenAPI"}
    links = "".join(f'<p><a href="{path}">{name}</a></p>' for path, name in targets.items())
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width"><title>{title}, Tocsin</title></head>'
        f"<body><h1>{title}</h1>{links}{body}</body></html>"
    )
    return HTMLResponse(page, headers=_HEADERS)


def _operations(document: Mapping[str, Any]) -> Iterator[str]:
    by_tag: defaultdict[str, list[str]] = defaultdict(list)
    for path, methods in document["paths"].items():
        for method, described in methods.items():
            tag = (described.get("tags") or ["other"])[0]
            by_tag[tag].append(_operation(f"{method.upper()} {path}", described))
    for tag, texts in sorted(by_tag.items()):
        yield f"<h2>{escape(tag)}</h2>{''.join(texts)}"


def _operation(name: str, described: Mapping[str, Any]) -> str:
    needs = described.get("x-tocsin-operation")
    rows = "".join(_parameter(parameter) for parameter in described.get("parameters", ()))
    table = f"<table><tr><th>parameter<th>in<th>meaning</tr>{rows}</table>" if rows else ""
    body = described.get("requestBody")
    return (
        f"<h3 id='{escape(described['operationId'])}'><code>{escape(name)}</code></h3>"
        f"<p>{escape(described.get('summary', ''))}."
        + (f" Needs <code>{escape(needs)}</code>." if needs else "")
        + f"</p>{table}"
        + (f"<p>Body: {_schema_name(body)}.</p>" if body else "")
    )


def _parameter(parameter: Mapping[str, Any]) -> str:
    required = ", required" if parameter.get("required") else ""
    meaning = escape(parameter.get("description", ""))
    return (
        f"<tr><td><code>{escape(parameter['name'])}</code><td>{parameter['in']}{required}<td>{meaning}</tr>"
    )


def _schema_name(body: Mapping[str, Any]) -> str:
    schema = next(iter(body["content"].values()))["schema"]
    return f"<code>{escape(schema.get('$ref', 'object').rpartition('/')[2])}</code>"


ROUTES = (
    Route("/openapi.json", Public(openapi, because=_REASON), methods=["GET"]),
    Route("/docs", Public(operations, because=_REASON), methods=["GET"]),
    Route(PAGE, Public(problems, because=_REASON), methods=["GET"]),
    Route("/", Public(home, because="it leads to the description"), methods=["GET"]),
)
