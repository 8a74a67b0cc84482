"""`/acknowledge/{link}`: acknowledges the alarm of a link in a message, without a login.

Guarantees: opening the link shows a button and changes nothing, so a program that previews links cannot
acknowledge. The link is for one alarm, ends after seven days, and works only while the alarm is open. The
acknowledgement has its audit row and its event, and its author is `link:` and the channel.

On failure: a link that was changed, and one that has expired, have the same page with status 404.
"""

from __future__ import annotations

import hmac
from html import escape

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rules.actions.link_signature import link_signature
from rules.alarms.operator import acknowledge
from rules.alarms.queries import Row, find_alarm
from timers.working_set import database_now
from tocsin.api.access.permission import VIA, Public
from tocsin.api.context import context_of
from tocsin.api.form_page import form_page
from tocsin.core.alarm_link import PATH, AlarmLink
from tocsin.core.audit import acting
from tocsin.core.db import Connection
from tocsin.core.errors import Refused

_INVALID = "<p>This link is not valid, or it has expired. Open the alarm in the console.</p>"


async def show_alarm(request: Request) -> Response:
    async with context_of(request).session() as connection:
        found = await _find(connection, request.path_params["link"])
    if found is None:
        return form_page(_INVALID, 404)
    _, alarm = found
    return form_page(_about(alarm) + (_BUTTON if _is_waiting(alarm) else _state(alarm)))


async def acknowledge_alarm(request: Request) -> Response:
    async with context_of(request).session() as connection:
        found = await _find(connection, request.path_params["link"])
        if found is None:
            return form_page(_INVALID, 404)
        link, alarm = found
        try:
            await acknowledge(connection, alarm, await acting(connection, f"link:{link.channel}", VIA))
        except Refused:
            return form_page(_about(alarm) + _state(alarm), 409)
        alarm = await find_alarm(connection, str(link.alarm_id))
    return form_page(_about(alarm) + _state(alarm))


async def _find(connection: Connection, text: str) -> tuple[AlarmLink, Row] | None:
    """The link and its alarm; None if the link was not signed by this instance, or has ended."""
    link = AlarmLink.parse(text)
    if link is None:
        return None
    signature = await link_signature(connection, link.alarm_id, link.expires_s, link.channel)
    is_valid = hmac.compare_digest(signature, link.signature)
    if not is_valid or link.expires_s <= (await database_now(connection)).timestamp():
        return None
    try:
        return link, await find_alarm(connection, str(link.alarm_id))
    except Refused:  # retention has removed the alarm
        return None


_BUTTON = '<form method="post"><button>Acknowledge</button></form>'


def _is_waiting(alarm: Row) -> bool:
    return bool(alarm["state"] == "open" and alarm["acknowledged_at"] is None)


def _about(alarm: Row) -> str:
    return f"<p>{escape(alarm['event_rule'])} of {escape(alarm['owner'])}</p>"


def _state(alarm: Row) -> str:
    if alarm["state"] != "open" or alarm["acknowledged_at"] is None:
        return f"<p>The alarm is {escape(alarm['state'])}.</p>"
    return f"<p>Acknowledged by {escape(alarm['acknowledged_by'])}.</p>"


_BECAUSE = "the signed link is the credential, for one alarm"
ROUTES = (
    Route(f"{PATH}{{link}}", Public(show_alarm, because=_BECAUSE), methods=["GET"]),
    Route(f"{PATH}{{link}}", Public(acknowledge_alarm, because=_BECAUSE), methods=["POST"]),
)
