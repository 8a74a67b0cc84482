from datetime import UTC, datetime
from typing import Any

import pytest

from rules.delivery.deliver import deliver
from rules.delivery.egress import Egress
from rules.delivery.message import Message
from rules.delivery.outcome import DeliveryOutcome
from rules.delivery.pagerduty import pagerduty_event
from schemas.documents import ChannelDocument
from schemas.documents.targets import PagerDutyTarget
from tests.rules.delivery.named_secrets import named_secrets
from tests.rules.delivery.receivers import Behaviour, Received, receiver, respond

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
KEY = "R0123456789ABCDEF0123456789ABCDE"
ALARM: dict[str, Any] = {
    "type": "alarm-opened",
    "state": "open",
    "alarm_id": "5c1f1f0e-8f64-4d0b-9d6c-0f6f2b8a7c11",
    "owner": "plant-7",
    "rule": "dsp-hot",
    "key": "dsp.temperature",
    "severity": "high",
    "since": "2026-11-17T11:59:00Z",
    "runbook_url": "https://wiki.example.com/dsp",
    "link": None,
}


async def send(
    egress: Egress, message: Message, behave: Behaviour | None = None
) -> tuple[DeliveryOutcome, Received]:
    async with receiver(behave) as server:
        url = f"http://127.0.0.1:{server.port}/v2/enqueue"
        target = PagerDutyTarget.model_validate({"routing_key": {"secret": "pd"}, "url": url})
        outcome = await deliver(egress, target, message, key="run/1", now=NOW, secrets=named_secrets(pd=KEY))
    return outcome, server.only


async def test_an_alarm_triggers_an_incident(egress: Egress) -> None:
    outcome, got = await send(
        egress, Message("[HIGH] dsp-hot (plant-7)", "it is hot", payload=ALARM), respond(202)
    )
    assert outcome.state == "delivered"
    assert (got.method, got.path) == ("POST", "/v2/enqueue")
    assert got.json == {
        "routing_key": KEY,
        "event_action": "trigger",
        "dedup_key": ALARM["alarm_id"],
        "client": "tocsin",
        "links": [{"href": "https://wiki.example.com/dsp", "text": "Runbook"}],
        "payload": {
            "summary": "[HIGH] dsp-hot (plant-7)",
            "source": "plant-7",
            "severity": "error",
            "timestamp": "2026-11-17T11:59:00Z",
            "component": "dsp.temperature",
            "class": "dsp-hot",
            "custom_details": ALARM,
        },
    }


@pytest.mark.parametrize(
    ("type", "state", "action"),
    [
        ("alarm-acknowledged", "open", "acknowledge"),
        ("alarm-resolved", "resolved", "resolve"),
        ("alarm-group", "resolved", "resolve"),
        ("alarm-reminder", "open", "trigger"),
        ("alarm-group", "open", "trigger"),
    ],
)
def test_the_incident_follows_the_alarm(type: str, state: str, action: str) -> None:
    event = pagerduty_event(ALARM | {"type": type, "state": state}, Message("s", "t"), "run/1", NOW)
    assert (event["event_action"], event["dedup_key"]) == (action, ALARM["alarm_id"])
    assert ("payload" in event) == (action == "trigger")


def test_a_group_is_one_incident_of_its_run() -> None:
    group = {"type": "alarm-group", "state": "open", "severity": None}
    keys = {pagerduty_event(group, Message("s", "t"), f"run-1/{n}", NOW)["dedup_key"] for n in range(3)}
    assert keys == {"run-1"}


@pytest.mark.parametrize(("status", "state"), [(400, "permanent"), (429, "retryable"), (500, "retryable")])
async def test_a_refusal_shows_no_routing_key(egress: Egress, status: int, state: str) -> None:
    outcome, _ = await send(egress, Message("s", "t"), respond(status, f"wrong {KEY}".encode()))
    assert outcome.state == state
    assert KEY not in outcome.text


def test_a_channel_has_a_routing_key_as_a_reference() -> None:
    target = {"routing_key": {"secret": "pagerduty-key"}}
    channel = ChannelDocument.model_validate({"name": "pd", "pagerduty": target})
    assert channel.target.url == "https://events.pagerduty.com/v2/enqueue"  # type: ignore[union-attr]
    with pytest.raises(ValueError, match="routing_key"):
        ChannelDocument.model_validate({"name": "pd", "pagerduty": {"routing_key": KEY}})
