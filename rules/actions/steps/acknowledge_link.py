"""The link of a message that acknowledges its alarm, for channels with `acknowledge_link`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from rules.actions.link_signature import link_signature
from rules.actions.steps.context import StepContext
from rules.delivery.alarm_facts import MessageView
from schemas.documents.channel import ChannelDocument
from tocsin.core.alarm_link import PATH, AlarmLink, expiry_s


async def with_acknowledge_link(
    view: MessageView,
    context: StepContext,
    channel: ChannelDocument,
    alarms: Sequence[Mapping[str, Any]],
    now: datetime,
) -> MessageView:
    """The view with a link, if the message is about one open alarm that is not acknowledged."""
    if not channel.acknowledge_link or not view.console_url or len(alarms) != 1:
        return view
    (alarm,) = alarms
    if alarm["state"] != "open" or alarm.get("acknowledged_by"):
        return view
    alarm_id, expires_s = UUID(str(alarm["id"])), expiry_s(now)
    async with context.open_session() as connection:
        signature = await link_signature(connection, alarm_id, expires_s, channel.name)
    link = AlarmLink(alarm_id, expires_s, channel.name, signature)
    return replace(view, acknowledge_url=f"{view.console_url}{PATH}{link.text}")
