"""Heartbeats that a ping with `?create=1` creates, where `TOCSIN_API_PING_CREATE` allows some.

Guarantee: a heartbeat is created only for an owner that the caller may send data for, with an audit row
like that of an apply, and only while fewer than the allowed number were created by pings. Concurrent pings create
it once.
"""

from __future__ import annotations

import json

from rules.apply import apply
from rules.documents.load import RulesInvalid, load_text
from rules.documents.rule_book import applied_documents
from schemas.documents import HeartbeatDocument
from tocsin.api.access.permission import Access
from tocsin.core.errors import InvalidInput

DESCRIPTION = "created by a ping"


async def create_heartbeat(access: Access, name: str) -> bool:
    """Create a heartbeat that is expected each day. False if no more may be created."""
    document = {"name": name, "every": "1d", "grace": "1h", "description": DESCRIPTION}
    try:
        loaded = load_text(json.dumps({"heartbeat": document}), file="ping")
    except RulesInvalid:
        raise InvalidInput(f"{name[:80]!r} is no name of a heartbeat") from None
    async with access.session() as connection:
        applied = await applied_documents(connection, HeartbeatDocument)
        created = sum(getattr(one, "description", "") == DESCRIPTION for one in applied)
        if created >= access.context.settings.api_ping_create:
            return False
        await apply(connection, loaded, await access.actor(connection))
    return True
