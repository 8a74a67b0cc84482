"""Tokens of programs: add, list, revoke, and look up.

Guarantees: the text of a token is returned once, by `add_token`, and is stored nowhere. Each change has
its audit row in the same transaction.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

import psycopg

from tocsin.api.access.caller import Caller
from tocsin.api.access.grant_text import grant_text, parse_grant
from tocsin.api.access.secret_text import digest_of, hint_of, new_secret
from tocsin.core.db import Connection, fetch_dict, fetch_dicts, fetch_value
from tocsin.core.errors import NotFound
from tocsin.core.sql_errors import readable
from tocsin.policy import Grant, Principal

KIND = "api"


class NewToken(NamedTuple):
    id: uuid.UUID
    text: str


class TokenChange(NamedTuple):
    """Who changes tokens, through what."""

    who: str
    via: str


async def add_token(
    connection: Connection,
    name: str,
    grants: Sequence[Grant],
    change: TokenChange,
    *,
    expires_at: datetime | None = None,
) -> NewToken:
    """Create a token. `InvalidInput` if a live one has the name, or if it would be expired at once."""
    text = new_secret(KIND)
    parameters = {
        "name": name,
        "digest": digest_of(text),
        "hint": hint_of(text),
        "grants": [grant_text(grant) for grant in grants],
        "expires_at": expires_at,
        "created_by": change.who,
        "via": change.via,
    }
    try:
        return NewToken(await fetch_value(connection, "tocsin.api.access/add_token", parameters), text)
    except psycopg.Error as error:
        raise readable(error) from None


async def list_tokens(connection: Connection) -> list[dict[str, Any]]:
    """All tokens without their secrets, the oldest first."""
    return await fetch_dicts(connection, "tocsin.api.access/list_tokens")


async def revoke_token(connection: Connection, token: str, change: TokenChange) -> dict[str, Any]:
    """End a token, by its id or its name. `NotFound` if no live token has it."""
    live = [row for row in await list_tokens(connection) if row["revoked_at"] is None]
    found = next((row for row in live if token in (str(row["id"]), row["name"])), None)
    if found is not None and await fetch_value(
        connection,
        "tocsin.api.access/revoke_token",
        {"id": found["id"], "revoked_by": change.who, "via": change.via},
    ):
        return found
    raise NotFound(f"there is no token {token!r}", remedy="`tocsin token list` lists them")


async def find_caller(connection: Connection, text: str) -> Caller | None:
    """The principal of a token; None if it is unknown, expired or revoked."""
    row = await fetch_dict(connection, "tocsin.api.access/use_token", {"digest": digest_of(text)})
    if row is None:
        return None
    principal = Principal(row["name"], tuple(parse_grant(grant) for grant in row["grants"]))
    return Caller(principal, "token", row["expires_at"])
