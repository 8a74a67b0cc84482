"""The message of a delivery step: defaults, templates, and what happens to a template that cannot be
filled."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from nats.aio.client import Client

from rules.actions.steps.messages import fill_message
from rules.delivery.message import Message
from tests.cdc.published_records import smaller
from tests.rules.delivery.receivers import receiver
from tests.rules.instance import Instance
from tocsin.core.db import Connection
from tocsin.core.settings import Settings


@pytest.fixture
async def instance(settings: Settings, connection: Connection, bus: Client) -> Instance:
    return await Instance.open(smaller(settings, egress_allow="127.0.0.1"), connection, bus)


def on_alarm(when: str, extra: str = "") -> str:
    return f"---\naction_rule:\n  name: page\n  on: alarm\n  when: '{when}'\n  action: book\n{extra}"


DEFAULT = Message(
    "[HIGH] hot (p)", "default text\n", html="<p>", blocks=[{}], payload={"rule": "hot", "severity": "high"}
)


def filled(**templates: Any) -> Message:
    return fill_message(DEFAULT, templates, {"owner": "p", "payload": {"labels": {}}, "severity": "high"})


def test_a_text_keeps_the_facts_of_the_payload() -> None:
    message = filled(text="{{ owner }} is {{ severity | upper }}")
    assert message.payload == {
        "rule": "hot",
        "severity": "high",
        "subject": "[HIGH] hot (p)",
        "text": "p is HIGH",
    }
    assert (message.html, message.blocks) == (None, None)
    assert message.problem is None


def test_a_text_that_cannot_be_filled_is_replaced_by_the_default() -> None:
    message = filled(text="{{ owner }} at {{ payload.labels.site }}", subject="{{ owner }}")
    assert (message.subject, message.text, message.html) == ("p", "default text\n", "<p>")
    assert message.payload == DEFAULT.payload
    assert message.problem is not None
    assert "there is no 'payload.labels.site'" in message.problem


def test_a_payload_that_cannot_be_filled_is_replaced_by_the_default() -> None:
    message = filled(payload={"site": "{{ payload.labels.site }}"})
    assert message.payload == DEFAULT.payload
    assert "payload: " in (message.problem or "")


async def test_a_page_whose_text_cannot_be_filled_is_sent_with_the_default_text(instance: Instance) -> None:
    async with receiver() as server:
        await instance.rules(
            f"""
channel: {{name: ops, tz: Europe/Amsterdam, webhook: {{url: "http://127.0.0.1:{server.port}/x"}}}}
---
action:
  name: book
  channel: {{name: ops, text: "{{{{ owner }}}} at {{{{ payload.labels.site }}}}"}}
"""
            + on_alarm("severity >= info")
        )
        await instance.alarm("hot")
    sent = server.only.json
    assert (sent["type"], sent["rule"], sent["severity"]) == ("alarm-opened", "hot", "high")
    result = (await instance.action())["result"]
    assert result["sent"] is True
    assert "there is no 'payload.labels'" in result["template_problem"]


@pytest.mark.parametrize(
    ("transition", "type"), [("acknowledged", "alarm-acknowledged"), ("resolved", "alarm-resolved")]
)
async def test_the_message_of_a_transition_is_about_that_transition(
    instance: Instance, transition: str, type: str
) -> None:
    async with receiver() as server:
        await instance.rules(
            f"""
channel: {{name: ops, webhook: {{url: "http://127.0.0.1:{server.port}/x"}}}}
---
action: {{name: book, channel: {{name: ops}}}}
"""
            + on_alarm('owner != ""', f"  transitions: [{transition}]\n")
        )
        alarm_id = await instance.alarm("hot")
        await instance.pass_time("5m")
        await (instance.acknowledge if transition == "acknowledged" else instance.resolve)(alarm_id)
    sent = server.only.json
    assert (sent["type"], sent["alarm_id"]) == (type, str(alarm_id))
    assert sent["duration_s"] == timedelta(minutes=5).total_seconds()
    assert sent["acknowledged_by"] == ("ann" if transition == "acknowledged" else None)
    assert sent["value"] == 71.5


async def test_a_severity_is_a_name_in_templates_and_a_number_in_conditions(instance: Instance) -> None:
    await instance.rules(
        """
action: {name: book, log: {message: "{{ severity }} {{ alarm.severity | upper }} {{ events[0].severity }}"}}
"""
        + on_alarm("severity == 4 && severity >= high")
    )
    await instance.alarm("hot")
    assert (await instance.action())["result"]["message"] == "high HIGH high"


async def test_a_whole_number_has_no_decimals_in_a_template(instance: Instance) -> None:
    await instance.runbook('- log: {message: "{{ payload.value }} {{ payload.value / 4 }}"}')
    await instance.event(payload={"value": 86.0})
    assert (await instance.action())["result"]["message"] == "86 21.5"
