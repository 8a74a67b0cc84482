"""Active items of an owner, which an operator ends before its data is erased.

Erasing never changes what is active.
"""

from __future__ import annotations

from typing import NamedTuple

from tocsin.core.db import Connection, fetch_all

_REMEDIES = {
    "schedule": "`tocsin schedule cancel NAME`, or remove it from the rules",
    "alarm": "`tocsin resolve ID`",
    "run": "`tocsin actions cancel ID`",
    "series": "stop its producers and wait until it is stale, or remove its datapoint_type",
    "system": "remove the owner from the members of the system",
    "heartbeat": "remove the owner from the heartbeat",
}
_PLURALS = {"series": "series"}


class ActiveItems(NamedTuple):
    kind: str
    number: int
    example: str

    @property
    def text(self) -> str:
        kind = self.kind if self.number == 1 else _PLURALS.get(self.kind, f"{self.kind}s")
        return f"{self.number:,} {kind}, such as '{self.example}'"

    @property
    def remedy(self) -> str:
        return _REMEDIES[self.kind]


async def find_active(connection: Connection, owner: str) -> list[ActiveItems]:
    rows = await fetch_all(connection, "rules.erasure/find_active", {"owner": owner})
    return [ActiveItems(*row) for row in rows if row[1]]
