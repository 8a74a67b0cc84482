"""What a receiver was told about alarms."""

from __future__ import annotations

import re
from email import message_from_bytes
from email.policy import default

from tests.rules.delivery.mail_servers import Mailbox
from tests.rules.delivery.receivers import Receiver


def told(server: Receiver) -> dict[str, list[str]]:
    """The states of each alarm, in the order in which the receiver accepted them."""
    states: dict[str, list[str]] = {}
    for body in server.accepted:
        for alarm in body.get("alarms", [body]):
            state = "resolved" if alarm["type"] == "alarm-resolved" else "open"
            states.setdefault(alarm["alarm_id"], []).append(state)
    return states


def told_by_mail(mailbox: Mailbox) -> dict[str, list[str]]:
    """The states of each alarm, in the order in which the mailbox accepted messages about it alone."""
    states: dict[str, list[str]] = {}
    for envelope in mailbox.envelopes:
        assert isinstance(envelope.content, bytes)
        mail = message_from_bytes(envelope.content, policy=default)
        text = mail.get_body(("plain",))
        assert text is not None
        (alarm_id,) = re.findall(r"^Alarm +([0-9a-f-]{36})", text.get_content(), re.MULTILINE)
        state = "resolved" if mail["Subject"].startswith("[RESOLVED]") else "open"
        states.setdefault(alarm_id, []).append(state)
    return states
