"""The whole path: YAML is applied, time passes, and the receiver gets one message of one action."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from itertools import pairwise

import nats
from nats.aio.msg import Msg

from cdc.publisher import Publisher
from clock.service import Clock
from rules.apply import apply
from rules.documents.load import load_text
from rules.worker import Worker
from tests.records import events
from tests.streams import read_stream
from timers.working_set import database_now
from tocsin.core.audit import Actor
from tocsin.core.db import Connection
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings

RULES = """
schedule:
  name: beat
  every: 1s
  grace: 1m
  owner: plant 7
  payload: {shift: early}
---
action:
  name: tell
  publish:
    subject: "received.NAMESPACE.{{ owner }}"
    payload: {shift: "{{ payload.shift }}", event: "{{ id }}"}
---
action_rule:
  name: tell-each-beat
  on: event
  when: 'origin == "scheduled" && schedule == "beat"'
  action: tell
"""


async def test_a_schedule_in_yaml_becomes_one_message_and_one_action(
    settings: Settings, connection: Connection
) -> None:
    actor = Actor("tester", "test", await database_now(connection))
    await apply(connection, load_text(RULES.replace("NAMESPACE", settings.namespace)), actor)
    receiver = await nats.connect(settings.nats)
    received: list[Msg] = []
    three = asyncio.Event()

    async def receive(message: Msg) -> None:
        received.append(message)
        if len(received) == 3:
            three.set()

    await receiver.subscribe(f"received.{settings.namespace}.>", cb=receive)
    await receiver.flush()
    async with running(
        Service("clock", Clock(settings).run),
        Service("cdc", Publisher(settings).run),
        Service("worker", Worker(settings).run),
    ):
        async with asyncio.timeout(60):
            await three.wait()
        stream = await read_stream(settings, 7)
    await receiver.close()

    rows = {str(row["id"]): row for row in await events(connection)}
    fires = [json.loads(m.data) for m in stream if ".event.scheduled." in m.subject]
    assert all(rows[fire["id"]]["seq"] == fire["seq"] for fire in fires)
    sent = [json.loads(message.data)["event"] for message in received]
    assert len(set(sent)) == len(sent)
    assert {rows[id]["schedule"] for id in sent} == {"beat"}
    assert received[0].subject == f"received.{settings.namespace}.plant%207"
    assert json.loads(received[0].data)["shift"] == "early"
    # Actions of several events run concurrently: only the log has an order.
    nominal = [row["ts"] for row in rows.values() if row["schedule"] == "beat"]
    assert {later - earlier for earlier, later in pairwise(nominal)} == {timedelta(seconds=1)}
