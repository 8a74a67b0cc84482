"""I8 with the services themselves: a clock, a publisher and two workers. The clock and one worker end in
the middle of their work again and again, while series open and resolve alarms, and HTTP and SMTP servers fail,
stall and come back."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from cdc.publisher import Publisher
from clock.service import Clock
from rules.worker import Worker
from tests.cdc.published_records import smaller
from tests.rules.actions.delivered_states import told, told_by_mail
from tests.rules.apply.apply_setup import put
from tests.rules.delivery.mail_servers import Mailbox, mail_server
from tests.rules.delivery.receivers import Receiver, receiver, reset_connection, respond, stall
from tests.sql import all_rows
from tests.wait import eventually
from tocsin.client.producer import Producer
from tocsin.core.db import Connection
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings

_OWNERS = [f"p{number}" for number in range(6)]
_FAULTS = (respond(503), respond(404), reset_connection, stall)
_MAIL_FAULTS = ({"DATA": "451 try later"}, {"DATA": "554 no"}, {"ops@example.com": "450 busy"})
_ROUNDS = 40
_SEED = 7 if os.environ.get("CI") else random.randrange(10**9)


def _rules(servers: list[Receiver], mailbox: Mailbox) -> str:
    alone, grouped = (
        f'---\nchannel: {{name: {name}, webhook: {{url: "http://127.0.0.1:{server.port}/x", timeout: 1s}},'
        " retry: {initial_interval: 100ms, max_interval: 300ms}}\n"
        for name, server in zip(("alone", "grouped"), servers, strict=True)
    )
    mail = (
        f"---\nchannel: {{name: mail, email: {{smtp: {{host: 127.0.0.1, port: {mailbox.port}, security: none}},"
        " from: tocsin@example.com, to: [ops@example.com], timeout: 1s},"
        " retry: {initial_interval: 100ms, max_interval: 300ms}}\n"
    )
    return (
        "event_rule: {name: hot, datapoint: t, above: {warning: 5, critical: 8}, notify: [alone, mail]}\n---\n"
        "action_rule: {name: page, on: alarm, notify: [grouped], group_by: [rule], group_wait: 300ms,"
        " group_interval: 200ms}\n" + alone + grouped + mail
    )


async def _send(producer: Producer, connection: Connection, values: dict[str, float]) -> None:
    """Send a value of each of these owners, and wait until a worker has processed them."""
    before = await _count(connection)
    for owner, value in values.items():
        await producer.send(owner, "t", value)
    await producer.flush()

    async def are_stored() -> bool:
        return await _count(connection) == before + len(values)

    await eventually(are_stored, "the datapoints are stored", within=60)


async def _count(connection: Connection) -> int:
    (row,) = await all_rows(connection, "select count(*) as n from tocsin.datapoint")
    return int(row["n"])


def _differences(received: list[dict[str, list[str]]], alarms: list[dict[str, object]]) -> list[str]:
    """The open alarms that a receiver does not know, and the last messages that are not true."""
    state_of = {str(row["id"]): row["state"] for row in alarms}
    found = []
    for number, states in enumerate(received):
        found += [
            f"receiver {number}: {id} is {state}, it was told {states.get(id)}"
            for id, state in state_of.items()
            if (state == "open" or id in states) and states.get(id, [None])[-1] != state
        ]
    return found


class MortalService:
    """Ends in the middle of its work, and another one begins."""

    def __init__(self, start: Callable[[], Awaitable[None]]) -> None:
        self._start = start
        self._task = asyncio.ensure_future(start())

    async def die(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    async def replace(self) -> None:
        await self.die()
        self._task = asyncio.ensure_future(self._start())


@pytest.mark.timeout(300)
async def test_services_deliver_every_open_alarm_in_order_although_workers_and_receivers_fail(
    settings: Settings, connection: Connection
) -> None:
    dice = random.Random(_SEED)
    allowed = smaller(settings, egress_allow="127.0.0.1")
    async with AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(receiver()) for _ in range(2)]
        mailbox = await stack.enter_async_context(mail_server())
        await put(connection, _rules(servers, mailbox))
        cdc = Service("cdc", Publisher(allowed).run)
        await stack.enter_async_context(running(cdc, Service("worker", Worker(allowed).run)))
        mortals = [MortalService(lambda: Worker(allowed).run()), MortalService(lambda: Clock(allowed).run())]
        producer = await stack.enter_async_context(Producer(allowed))
        for _ in range(_ROUNDS):
            owners = [owner for owner in _OWNERS if dice.random() < 0.4]
            await _send(producer, connection, {owner: dice.choice([1.0, 1.0, 6.0, 9.0]) for owner in owners})
            dice.choice(servers).behaviour = dice.choice((respond(), respond(), *_FAULTS))
            mailbox.refusing = dict(dice.choice(({}, {}, *_MAIL_FAULTS)))
            mailbox.is_stalling = dice.random() < 0.2
            if dice.random() < 0.2:
                await dice.choice(mortals).replace()
        for server in servers:
            server.behaviour = respond()
        mailbox.refusing, mailbox.is_stalling = {}, False
        last = {owner: 9.0 if owner in _OWNERS[:3] else 1.0 for owner in _OWNERS}
        await _send(producer, connection, last)

        def received() -> list[dict[str, list[str]]]:
            return [*map(told, servers), told_by_mail(mailbox)]

        await eventually(_is_settled(connection, received), "all receivers know all alarms", within=120)
        for mortal in mortals:
            await mortal.die()
    alarms = await all_rows(connection, "select id, owner, state from tocsin.alarm")
    assert {row["owner"] for row in alarms if row["state"] == "open"} == set(_OWNERS[:3])
    for states in received():
        for id, in_order in states.items():
            assert in_order == sorted(in_order), f"an older state of {id} came late (seed {_SEED})"


def _is_settled(
    connection: Connection, received: Callable[[], list[dict[str, list[str]]]]
) -> Callable[[], Awaitable[bool]]:
    async def is_settled() -> bool:
        alarms = await all_rows(connection, "select id, owner, state from tocsin.alarm")
        is_evaluated = {row["owner"] for row in alarms if row["state"] == "open"} == set(_OWNERS[:3])
        return is_evaluated and not _differences(received(), alarms)

    return is_settled
