"""The audit trail: who changed what, through what, and when.

Guarantee: `record_audit` runs in the caller's transaction, so a change and its audit row commit
together. Time and principal of the row are those of the server and of the session: what the caller
gives is stored as a claim, unless the session is trusted (`tocsin.is_trusted`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from tocsin.core.db import Connection, fetch_dicts, fetch_one, statement
from tocsin.core.instant import check_aware


@dataclass(frozen=True)
class Actor:
    """A person or service that makes a change, through what (`via`), at the instant `now`."""

    who: str
    via: str
    now: datetime
    claimed: str = ""
    """The name that the caller gave, if it is not `who`."""

    def __post_init__(self) -> None:
        check_aware(self.now, "now")


async def acting(connection: Connection, claimed: str, via: str) -> Actor:
    """The actor of this session now: its principal, which `claimed` names for a trusted session only."""
    who, now = await fetch_one(connection, "tocsin.core/read_principal", {"claimed": claimed})
    return Actor(who, via, now, claimed)


async def record_audit(
    connection: Connection,
    actor: Actor,
    verb: str,
    kind: str,
    name: str,
    *,
    owner: str = "",
    old: Mapping[str, Any] | None = None,
    new: Mapping[str, Any] | None = None,
) -> None:
    """Record that `actor` changed the `kind` called `name`, with its state before and after."""
    await connection.execute(
        statement("tocsin.core/insert_audit"),
        {
            "who": actor.claimed or actor.who,
            "via": actor.via,
            "verb": verb,
            "kind": kind,
            "owner": owner,
            "name": name,
            "old": None if old is None else Jsonb(old),
            "new": None if new is None else Jsonb(new),
        },
    )


async def list_audit(
    connection: Connection, name: str | None = None, *, after_id: int | None = None, limit: int = 50
) -> list[dict[str, Any]]:
    """Entries of the audit, the newest first, behind the entry `after_id`."""
    parameters = {"name": name, "after_id": after_id, "limit": limit}
    return await fetch_dicts(connection, "tocsin.core/list_audit", parameters)
