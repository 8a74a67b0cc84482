"""The audit trail: who changed what, through what, and when.

Guarantee: `record_audit` runs in the caller's transaction, so a change and its audit row commit
together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from tocsin.core.db import Connection, statement
from tocsin.core.instant import check_aware


@dataclass(frozen=True)
class Actor:
    """A person or service that makes a change, through what (`via`), at the instant `now`."""

    who: str
    via: str
    now: datetime

    def __post_init__(self) -> None:
        check_aware(self.now, "now")


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
            "at": actor.now,
            "who": actor.who,
            "via": actor.via,
            "verb": verb,
            "kind": kind,
            "owner": owner,
            "name": name,
            "old": None if old is None else Jsonb(old),
            "new": None if new is None else Jsonb(new),
        },
    )
