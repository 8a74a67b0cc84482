"""Reads the credentials of a request and resolves them to a `Caller`.

A token is accepted where clients of other systems put theirs: `Authorization: Bearer TOKEN`,
`Authorization: Token TOKEN` (Influx) and as the password of `Authorization: Basic`. A token in the URL
is not accepted, because URLs are logged; `path_token.py` is for the routes that differ. Without a token, the
person that a trusted proxy names counts (`forwarded.py`), or the cookie of a session, if the request comes
from our own pages (`cross_site.py`).

On failure: `Unauthenticated`, in the same words for an unknown, an expired and a revoked token.
"""

from __future__ import annotations

import base64
import binascii

from starlette.requests import HTTPConnection

from tocsin.api.access.caller import Caller
from tocsin.api.access.cross_site import refuse_other_sites
from tocsin.api.access.forwarded import forwarded_caller
from tocsin.api.access.secret_text import digest_of, is_secret
from tocsin.api.access.sessions import find_session, session_of
from tocsin.api.access.tokens import KIND, find_caller
from tocsin.api.context import ApiContext, context_of
from tocsin.core.errors import Unauthenticated

_LONGEST_HEADER = 1024


async def authenticate(connection: HTTPConnection) -> Caller:
    """The caller of a request. Raises `Unauthenticated`."""
    text = token_of(connection)
    if text is not None:
        return await caller_of_token(context_of(connection), text)
    settings = context_of(connection).settings
    forwarded = forwarded_caller(connection, settings)
    if forwarded is not None:
        refuse_other_sites(connection)
        return forwarded
    session = session_of(connection, settings)
    if session is None:
        raise Unauthenticated(
            "the request has no credentials",
            remedy="send `Authorization: Bearer TOKEN`; `tocsin token add` makes one",
        )
    refuse_other_sites(connection)
    return await _caller_of_session(context_of(connection), session)


async def _caller_of_session(context: ApiContext, session: str) -> Caller:
    digest = digest_of(session)
    caller = context.tokens.find(digest)
    if caller is None:
        async with context.session() as connection:
            caller = await find_session(connection, session)
        if caller is None:
            raise Unauthenticated("the session has ended", remedy="log in again, with `tocsin token login`")
        context.tokens.keep(digest, caller)
    return caller


async def caller_of_token(context: ApiContext, text: str) -> Caller:
    """The caller of a token, wherever the client sent it. Raises `Unauthenticated`."""
    if is_secret(text, KIND):
        digest = digest_of(text)
        known = context.tokens.find(digest)
        if known is not None:
            return known
        async with context.session() as connection:
            caller = await find_caller(connection, text)
        if caller is not None:
            context.tokens.keep(digest, caller)
            return caller
    raise Unauthenticated(
        "the token is not valid",
        remedy="check that it is complete, not expired and not revoked; `tocsin token add` makes one",
    )


def token_of(connection: HTTPConnection) -> str | None:
    """The token in the Authorization header; None without one."""
    header = connection.headers.get("authorization", "")
    scheme, _, value = header.partition(" ")
    if not value or len(header) > _LONGEST_HEADER:
        return None
    if scheme.lower() in ("bearer", "token"):
        return value.strip()
    if scheme.lower() == "basic":
        return _password(value.strip())
    return None


def _password(encoded: str) -> str | None:
    try:
        return base64.b64decode(encoded, validate=True).decode().partition(":")[2] or None
    except (binascii.Error, UnicodeDecodeError):
        return None
