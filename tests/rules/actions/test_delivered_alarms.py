"""I8: random alarms, groups, snoozes and silences, targets that fail, workers that die: at the receiver
every open alarm that is not suppressed was delivered, in order, and the last message about each alarm is
its current state."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest
from nats.aio.client import Client

from cdc.log_reader import LogReader
from rules.actions import performer
from rules.actions.commit import commit_outcome
from rules.actions.performer import perform_step
from schemas.wire.step import StepRow
from tests.cdc.published_records import smaller
from tests.rules.actions.delivered_states import told
from tests.rules.delivery.receivers import Receiver, receiver, reset_connection, respond
from tests.rules.instance import Instance
from tests.sql import all_rows
from tocsin.core.db import Connection
from tocsin.core.settings import Settings

_OWNERS = ("p1", "p2", "p3", "q1", "q2")
_FAULTS = (respond(), respond(503), respond(404), reset_connection)
_ACTS = ("open", "open", "resolve", "acknowledge", "snooze", "silence", "fail", "heal", "pass", "pass")
_SEEDS = range(4) if os.environ.get("CI") else [random.randrange(10**9) for _ in range(4)]


class WorkerDied(Exception):
    pass


class MortalInstance(Instance):
    """Its workers die between the effect of a step and the commit of its outcome, and its lane before the
    commit of a batch. Both are repeated, as by the next worker."""

    dice: random.Random

    async def perform_due(self) -> None:
        for one in await LogReader(self.connection).read(self._performed, 1000):
            self._performed = one.seq
            while isinstance(one, StepRow):
                try:
                    await perform_step(self.context, one.body("s"))
                    break
                except WorkerDied:
                    continue

    async def _lane_reads(self, messages: list[Any]) -> None:
        while self.dice.random() < 0.2:
            try:
                async with self.connection.transaction():
                    await super()._lane_reads(messages)
                    raise WorkerDied
            except WorkerDied:
                continue
        await super()._lane_reads(messages)


@dataclass
class World:
    instance: MortalInstance
    dice: random.Random
    servers: list[Receiver]
    alarms: dict[str, UUID] = field(default_factory=dict)
    """The open alarm of each owner."""
    ids: dict[str, str] = field(default_factory=dict)
    """The owner of each alarm that ever opened."""

    async def act(self) -> None:
        owner, act = self.dice.choice(_OWNERS), self.dice.choice(_ACTS)
        alarm = self.alarms.get(owner)
        if act == "open" and alarm is None:
            self.alarms[owner] = await self.instance.alarm(owner=owner, site=owner[0])
            self.ids[str(self.alarms[owner])] = owner
        elif act == "resolve" and alarm is not None:
            await self.instance.resolve(self.alarms.pop(owner))
        elif act == "acknowledge" and alarm is not None:
            await self.instance.acknowledge(alarm)
        elif act == "snooze" and alarm is not None:
            await self.instance.snooze(alarm, self.dice.choice(("1m", "20m", "2h")))
        elif act == "silence":
            await self.instance.silence(f'owner == "{owner}"', self.dice.choice(("3m", "1h")))
        elif act in ("fail", "heal"):
            behaviour = respond() if act == "heal" else self.dice.choice(_FAULTS)
            self.dice.choice(self.servers).behaviour = behaviour
        elif act == "pass":
            await self.instance.pass_time(self.dice.choice(("5s", "40s", "6m", "31m")))


@pytest.fixture
async def mortal(settings: Settings, connection: Connection, bus: Client) -> MortalInstance:
    return await MortalInstance.open(smaller(settings, egress_allow="127.0.0.1"), connection, bus)


@pytest.mark.parametrize("place", range(4))
async def test_every_open_alarm_is_delivered_in_order_and_the_last_message_is_its_state(
    mortal: MortalInstance, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    seed = _SEEDS[place]
    dice = mortal.dice = random.Random(seed)

    async def mortal_commit(*arguments: Any) -> bool:
        if dice.random() < 0.15:
            raise WorkerDied
        return await commit_outcome(*arguments)

    monkeypatch.setattr(performer, "commit_outcome", mortal_commit)
    async with receiver() as alone, receiver() as grouped:
        await mortal.rules(_rules(alone, grouped))
        world = World(mortal, dice, [alone, grouped])
        for _ in range(60):
            await world.act()
        alone.behaviour = grouped.behaviour = respond()
        # Longer than every snooze, silence, backoff and group_interval.
        await mortal.pass_time("4h")
    open_ids = {str(alarm) for alarm in world.alarms.values()}
    for server in (alone, grouped):
        states = told(server)
        assert open_ids <= states.keys(), f"an open alarm was never delivered (seed {seed})"
        for id, in_order in states.items():
            assert in_order == sorted(in_order), f"an older state came after a newer one (seed {seed})"
            assert in_order[-1] == ("open" if id in open_ids else "resolved"), (
                f"{world.ids[id]} (seed {seed})"
            )
    rows = await all_rows(mortal.connection, "select count(*) as n from tocsin.action where state = 'failed'")
    assert rows[0]["n"] == 0


def _rules(alone: Receiver, grouped: Receiver) -> str:
    def channel(name: str, server: Receiver) -> str:
        return f'---\nchannel: {{name: {name}, webhook: {{url: "http://127.0.0.1:{server.port}/x", timeout: 1s}}}}\n'

    return (
        "event_rule: {name: hot, datapoint: t, above: 5, notify: [alone], repeat: 30m}\n---\n"
        "action_rule: {name: page, on: alarm, notify: [grouped], group_by: [labels.site], group_wait: 30s,"
        " repeat: 1h}\n" + channel("alone", alone) + channel("grouped", grouped)
    )
