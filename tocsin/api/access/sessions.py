"""Sessions of people: begun by a one-time login link or by OIDC, kept in Postgres, proven by a cookie.

Guarantees: a link works once, and for `LINK_LASTS`. A session ends after 12 hours without use, after
`SESSION_LASTS`, or at logout. Only digests of links and cookies are stored.

The cookie is `__Host-tocsin` with Secure, so no other host and no plain connection can set or read it.
Browsers store such a cookie over HTTPS only, and not all of them on `http://127.0.0.1`. So plain HTTP on
loopback has a cookie of another name, without Secure: it never leaves the machine. Its name has the port,
because browsers share cookies among the ports of a host.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from starlette.requests import HTTPConnection
from starlette.responses import Response

from timers.working_set import database_now
from tocsin.api.access.caller import Caller
from tocsin.api.access.grant_text import grant_text, parse_grant
from tocsin.api.access.secret_text import digest_of, is_secret, new_secret
from tocsin.core.db import Connection, fetch_dict, fetch_dicts, fetch_value, statement
from tocsin.core.errors import NotFound, Refused
from tocsin.core.settings import Settings
from tocsin.policy import Grant, Principal

LINK_LASTS = timedelta(minutes=10)
SESSION_LASTS = timedelta(days=7)
LINK_KIND = "login"
SESSION_KIND = "session"


async def add_login_link(
    connection: Connection, name: str, grants: Sequence[Grant], who: str, via: str
) -> str:
    """The code of a new one-time link."""
    code = new_secret(LINK_KIND)
    await connection.execute(
        statement("tocsin.api.access/add_login"),
        {
            "name": name,
            "digest": digest_of(code),
            "grants": [grant_text(grant) for grant in grants],
            "expires_at": await database_now(connection) + LINK_LASTS,
            "created_by": who,
            "via": via,
        },
    )
    return code


async def begin_session(connection: Connection, code: str) -> str:
    """Use the code of a link; returns the secret of the session. `Refused` if the link is not valid."""
    session = new_secret(SESSION_KIND)
    if is_secret(code, LINK_KIND):
        parameters = {
            "login": digest_of(code),
            "session": digest_of(session),
            "expires_at": await database_now(connection) + SESSION_LASTS,
        }
        if await fetch_value(connection, "tocsin.api.access/begin_session", parameters) is not None:
            return session
    raise Refused(
        "the login link is not valid: it works once, and for ten minutes",
        remedy="make another with `tocsin token login`",
    )


async def open_session(connection: Connection, principal: Principal, source: str) -> str:
    """Begin the session of a person that was authenticated elsewhere; returns its secret."""
    session = new_secret(SESSION_KIND)
    await connection.execute(
        statement("tocsin.api.access/open_session"),
        {
            "name": principal.name,
            "digest": digest_of(session),
            "grants": [grant_text(grant) for grant in principal.grants],
            "source": source,
            "expires_at": await database_now(connection) + SESSION_LASTS,
        },
    )
    return session


async def find_session(connection: Connection, session: str) -> Caller | None:
    row = await fetch_dict(connection, "tocsin.api.access/use_session", {"digest": digest_of(session)})
    if row is None:
        return None
    principal = Principal(row["name"], tuple(parse_grant(grant) for grant in row["grants"]))
    return Caller(principal, "session", row["expires_at"])


async def end_session(connection: Connection, session: str) -> None:
    await fetch_value(connection, "tocsin.api.access/end_session", {"digest": digest_of(session)})


async def list_sessions(connection: Connection, most: int) -> list[dict[str, Any]]:
    """The live sessions without their secrets, the newest first."""
    return await fetch_dicts(connection, "tocsin.api.access/list_sessions", {"most": most})


async def revoke_session(connection: Connection, id: uuid.UUID, who: str, via: str) -> None:
    """End the session of another person. `NotFound` if it has ended."""
    parameters = {"id": id, "revoked_by": who, "via": via}
    if not await fetch_value(connection, "tocsin.api.access/revoke_session", parameters):
        raise NotFound(f"there is no session '{id}'", remedy="`GET /v1/sessions` lists those that are live")


class CookieForm(NamedTuple):
    name: str
    is_secure: bool


def cookie_form(connection: HTTPConnection, settings: Settings) -> CookieForm:
    """The cookie of this connection. Behind a proxy that ends TLS it is the secure one too."""
    if connection.url.scheme in ("https", "wss") or settings.api_plain:
        return CookieForm("__Host-tocsin", True)
    return CookieForm(f"tocsin-{connection.url.port or 80}", False)


def session_of(connection: HTTPConnection, settings: Settings) -> str | None:
    """The secret of the session in the cookie; None without a well-formed one."""
    text = connection.cookies.get(cookie_form(connection, settings).name, "")
    return text if is_secret(text, SESSION_KIND) else None


def set_cookie(response: Response, connection: HTTPConnection, settings: Settings, session: str) -> None:
    form = cookie_form(connection, settings)
    response.set_cookie(
        form.name,
        session,
        max_age=int(SESSION_LASTS.total_seconds()),
        path="/",
        secure=form.is_secure,
        httponly=True,
        samesite="lax",
    )


def delete_cookie(response: Response, connection: HTTPConnection, settings: Settings) -> None:
    form = cookie_form(connection, settings)
    response.delete_cookie(form.name, path="/", secure=form.is_secure, httponly=True, samesite="lax")
