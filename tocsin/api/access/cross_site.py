"""Refuses requests that another site makes with the cookie of a person (CSRF).

A browser names the site of a request in `Sec-Fetch-Site`, and older ones in `Origin`; a page cannot
forge either. With a session, a change or a WebSocket is accepted from the same origin only. A request
with neither header does not come from a page. Tokens need no check: a browser does not add them.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from tocsin.api.problems import ProblemRaised

_SAFE = ("GET", "HEAD", "OPTIONS")


def refuse_other_sites(connection: HTTPConnection) -> None:
    """Raise a problem unless the request comes from our own pages, or from no page."""
    if connection.scope["type"] == "http" and connection.scope["method"] in _SAFE:
        return
    site = connection.headers.get("sec-fetch-site")
    origin = connection.headers.get("origin")
    is_own = site in ("same-origin", "none") if site else origin is None or _is_own_origin(connection, origin)
    if not is_own:
        raise ProblemRaised(
            "cross-site",
            "another site made this request with your session",
            remedy="use the pages of this host, or a token",
        )


def _is_own_origin(connection: HTTPConnection, origin: str) -> bool:
    return bool(origin) and urlsplit(origin).netloc == connection.headers.get("host")
