"""Reads a channel, and sends a test message through it.

Guarantee: `send_test` delivers like a notification, with the given secrets. The message states that
it is a test.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import datetime, timedelta

from pydantic import ValidationError

from rules.delivery.alarm_facts import AlarmFacts, MessageKind, MessageView
from rules.delivery.alarm_message import alarm_message
from rules.delivery.deliver import deliver
from rules.delivery.egress import Egress
from rules.delivery.outcome import DeliveryOutcome
from rules.delivery.secrets import Secrets
from schemas.documents.channel import ChannelDocument
from schemas.error_text import error_text
from tocsin.core.db import Connection, fetch_all, fetch_one
from tocsin.core.errors import InvalidInput


async def read_channel(connection: Connection, name: str) -> ChannelDocument:
    """The current document of a channel. `InvalidInput` if there is none, or if this version of
    Tocsin cannot read it."""
    row = await fetch_one(connection, "rules.actions/read_channel", {"name": name})
    if row is None:
        raise InvalidInput(
            f"there is no channel {name!r}", remedy="`tocsin channels` lists those that are applied"
        )
    try:
        return ChannelDocument.model_validate(row[0])
    except ValidationError as error:
        raise InvalidInput(
            f"the channel {name!r} cannot be read by this version of tocsin ({error_text(error)})",
            remedy="apply it again",
        ) from None


async def read_channels(connection: Connection, name: str) -> dict[str, ChannelDocument]:
    """The current documents of a channel and of its fallback, without those that were removed."""
    rows = await fetch_all(connection, "rules.actions/read_channels", {"name": name})
    return {document["name"]: ChannelDocument.model_validate(document) for (document,) in rows}


async def send_test(
    egress: Egress,
    channel: ChannelDocument,
    kind: MessageKind,
    now: datetime,
    who: str,
    secrets: Secrets | None = None,
    console_url: str = "",
) -> DeliveryOutcome:
    message = alarm_message(
        _test_facts(channel, kind, now, who), kind, now, MessageView(tz=channel.tz, console_url=console_url)
    )
    return await deliver(
        egress, channel.target, message, key=f"test/{uuid.uuid4()}", now=now, secrets=secrets
    )


def _test_facts(channel: ChannelDocument, kind: MessageKind, now: datetime, who: str) -> AlarmFacts:
    """An alarm that looks like one of this transition, an hour after it began."""
    facts = AlarmFacts(
        rule="test",
        severity="info",
        owner="tocsin",
        since=now if kind == "opened" else now - timedelta(hours=1),
        message=f"this is a test of the channel {channel.name!r} by {who}: nothing is wrong",
    )
    note = "a note of the person who acted"
    if kind == "resolved":
        return replace(facts, state="resolved", resolved_at=now)
    if kind == "acknowledged":
        return replace(facts, acknowledged_by=who, note=note)
    if kind == "snoozed":
        return replace(facts, snoozed_by=who, snoozed_until=now + timedelta(hours=1))
    if kind in ("unsnoozed", "snooze-ended"):
        return replace(facts, snoozed_by=who)
    return facts
