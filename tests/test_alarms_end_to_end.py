"""The whole path of an alarm: values on the real stream, a webhook, an operator, and a stale series."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from standardwebhooks.webhooks import Webhook

from cdc.publisher import Publisher
from clock.service import Clock
from rules.worker import Worker
from tests.cdc.published_records import smaller, with_long_timeouts
from tests.cli.conftest import CommandLine, environment_of
from tests.rules.apply.apply_setup import put
from tests.rules.delivery.receivers import Received, Receiver, receiver
from tests.sql import all_rows, one_row
from tests.wait import eventually
from tocsin.client import Producer
from tocsin.core.db import Connection
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
RULES = """
datapoint_type: {name: pump-flow, key: pump.flow, interval: 200ms, tolerance: 2, on_stale: alarm, notify: [ops]}
---
event_rule:
  name: dsp-hot
  datapoint: dsp.temperature
  above: 65
  for: 300ms
  severity: high
  notify: [ops]
---
channel:
  name: ops
  webhook: {url: "http://127.0.0.1:PORT/ops", secrets: [{secret: ops-secret}]}
---
action_rule: {name: page-if-not-acknowledged, on: alarm, when: 'severity >= high', action: page}
---
action:
  name: page
  steps:
    - wait: {for: 1h}
    - publish: {subject: pager, payload: {text: "{{ alarm.message }}"}}
"""


async def notified(server: Receiver, type: str, rule: str) -> dict[str, Any]:
    """Wait for the one webhook of this type and rule; returns its body after checking the signature and the key."""

    def matching_requests() -> list[Received]:
        return [
            request
            for request in server.requests
            if (request.json["type"], request.json["rule"]) == (type, rule)
        ]

    await until(lambda: bool(matching_requests()), f"the webhook of {type} of {rule}")
    (request,) = matching_requests()
    Webhook(SECRET).verify(request.body, request.headers)
    assert request.headers["idempotency-key"] == request.headers["webhook-id"]
    body: dict[str, Any] = request.json
    return body


async def until(holds: Callable[[], bool], what: str) -> None:
    async def is_so() -> bool:
        return holds()

    await eventually(is_so, what, within=60)


async def page_is(connection: Connection, state: str) -> None:
    async def is_so() -> bool:
        rows = await all_rows(connection, "select state from tocsin.action where name = 'page'")
        return [row["state"] for row in rows] == [state]

    await eventually(is_so, f"the page is {state}", within=60)


async def test_an_alarm_is_opened_notified_acknowledged_and_resolved_and_a_stale_series_opens_one(
    settings: Settings, connection: Connection
) -> None:
    settings = smaller(settings, egress_allow="127.0.0.1")
    settings._secret_variables["TOCSIN_SECRET_OPS_SECRET"] = SECRET
    tocsin = CommandLine(environment_of(with_long_timeouts(settings)))
    async with receiver() as server:
        await put(connection, RULES.replace("PORT", str(server.port)))
        async with (
            Producer(settings) as producer,
            running(
                Service("clock", Clock(settings).run),
                Service("cdc", Publisher(settings).run),
                Service("worker", Worker(settings).run),
            ),
        ):
            await producer.send("plant-7", "dsp.temperature", 71.5)
            opened = await notified(server, "alarm-opened", "dsp-hot")
            assert (opened["owner"], opened["value"], opened["severity"]) == ("plant-7", 71.5, "high")
            await page_is(connection, "running")

            await asyncio.to_thread(tocsin, "ack", opened["alarm_id"], "--note", "the fan is being replaced")
            await page_is(connection, "cancelled")

            await producer.send("plant-7", "dsp.temperature", 50)
            resolved = await notified(server, "alarm-resolved", "dsp-hot")
            assert (resolved["alarm_id"], resolved["value"]) == (opened["alarm_id"], 50)

            await producer.send("plant-8", "pump.flow", 12.5)
            stale = await notified(server, "alarm-opened", "stale:pump-flow")
            assert (stale["owner"], stale["key"], stale["value"]) == ("plant-8", "pump.flow", 12.5)
            shown = await asyncio.to_thread(tocsin, "explain", opened["alarm_id"])

    assert "acknowledged by" in shown.out
    assert "started page by page-if-not-acknowledged, cancelled" in shown.out
    assert sorted(request.json["type"] for request in server.requests) == ["alarm-opened"] * 2 + [
        "alarm-resolved"
    ]
    await assert_exact_instants(connection)


async def assert_exact_instants(connection: Connection) -> None:
    """The instants depend on the arrivals alone, to the microsecond, however late a service was."""
    alarm = await one_row(connection, "select * from tocsin.alarm where event_rule = 'dsp-hot'")
    assert alarm["state"] == "resolved"
    assert alarm["opened_at"] - alarm["since"] == timedelta(milliseconds=300)
    flow = await one_row(connection, "select * from tocsin.current_value where key = 'pump.flow'")
    assert flow["freshness"] == "stale"
    assert flow["stale_since"] - flow["arrived_at"] == timedelta(milliseconds=400)
