"""The signature of a link that acknowledges an alarm: made for a message, and made again to check it."""

from __future__ import annotations

from uuid import UUID

from tocsin.core.db import Connection, fetch_value


async def link_signature(connection: Connection, alarm_id: UUID, expires_s: int, channel: str) -> str:
    parameters = {"alarm_id": alarm_id, "expires_s": expires_s, "channel": channel}
    return str(await fetch_value(connection, "rules.actions/sign_link", parameters))
