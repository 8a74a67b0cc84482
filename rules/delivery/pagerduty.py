"""Delivers to PagerDuty with Events API v2.

Guarantee: an alarm is one incident there. It is triggered when the alarm opens, acknowledged and resolved
with it. The `dedup_key` is the id of the alarm, or of the run that notifies a group, so a message that is sent
twice changes nothing. The routing key is sent to the host of `url` alone.

PagerDuty answers 202. 400 is permanent, 429 and 5xx are tried again.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from rules.delivery.egress import Egress
from rules.delivery.http import HttpRequest, request
from rules.delivery.message import Message
from rules.delivery.outcome import DeliveryOutcome, outcome_of_answer
from rules.delivery.secrets import Secrets, host_of
from rules.delivery.webhook import json_body, plain_payload
from schemas.documents.targets import PagerDutyTarget
from tocsin.core.instant import instant_text

_MAX_SUMMARY_LENGTH = 1_024
_ACTIONS = {"alarm-acknowledged": "acknowledge", "alarm-resolved": "resolve"}
# The four severities of PagerDuty, by those of the default TOCSIN_SEVERITIES.
_SEVERITIES = {
    "info": "info",
    "warning": "warning",
    "average": "warning",
    "high": "error",
    "critical": "critical",
    "disaster": "critical",
}


async def send_pagerduty(
    egress: Egress, target: PagerDutyTarget, message: Message, secrets: Secrets, *, key: str, now: datetime
) -> DeliveryOutcome:
    payload = message.payload if message.payload is not None else plain_payload(message)
    routing_key = await secrets.reveal_to(host_of(target.url), target.routing_key)
    body = json_body({"routing_key": routing_key, **pagerduty_event(payload, message, key, now)})
    headers = {"Content-Type": "application/json"}
    answer = await request(
        egress, HttpRequest("POST", target.url, headers, body, target.timeout.total_seconds())
    )
    return outcome_of_answer(answer.where, answer.status, answer.headers, answer.excerpt, now)


def pagerduty_event(payload: dict[str, Any], message: Message, key: str, now: datetime) -> dict[str, Any]:
    """The event without its routing key. Pure."""
    action = _ACTIONS.get(str(payload.get("type")), "trigger")
    if payload.get("state") == "resolved":
        action = "resolve"
    event: dict[str, Any] = {
        "event_action": action,
        "dedup_key": str(payload.get("alarm_id") or key.partition("/")[0]),
    }
    if action != "trigger":
        return event
    links = [("Open alarm", payload.get("link")), ("Runbook", payload.get("runbook_url"))]
    return event | {
        "client": "tocsin",
        "links": [{"href": href, "text": text} for text, href in links if href],
        "payload": {
            "summary": message.subject_line[:_MAX_SUMMARY_LENGTH],
            "source": str(payload.get("owner") or "tocsin"),
            "severity": _SEVERITIES.get(str(payload.get("severity")), "error"),
            "timestamp": str(payload.get("since") or instant_text(now)),
            "component": str(payload.get("key") or ""),
            "class": str(payload.get("rule") or payload.get("type") or ""),
            "custom_details": payload,
        },
    }
