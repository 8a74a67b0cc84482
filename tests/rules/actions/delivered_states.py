"""What a receiver was told about alarms."""

from __future__ import annotations

from tests.rules.delivery.receivers import Receiver


def told(server: Receiver) -> dict[str, list[str]]:
    """The states of each alarm, in the order in which the receiver accepted them."""
    states: dict[str, list[str]] = {}
    for body in server.accepted:
        for alarm in body.get("alarms", [body]):
            state = "resolved" if alarm["type"] == "alarm-resolved" else "open"
            states.setdefault(alarm["alarm_id"], []).append(state)
    return states
