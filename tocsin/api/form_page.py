"""A page with a button and nothing else: no script, no style, no other host, and no referrer."""

from __future__ import annotations

from starlette.responses import HTMLResponse, Response

_HEADERS = {
    "content-security-policy": "default-src 'none'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-robots-tag": "noindex",
}


def form_page(body: str, status: int = 200) -> Response:
    """`body` is HTML whose values are escaped."""
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>Tocsin</title><h1>Tocsin</h1>{body}</html>"
    )
    return HTMLResponse(page, status, headers=_HEADERS)
