"""Producers with jitter, bursts, gaps, wrong clocks and invalid messages, and groups that stop and resume.

Guarantee: `sent` counts the datapoints that JetStream has acknowledged and that a worker must store,
`invalid` the messages that it must reject.
"""

from __future__ import annotations

import asyncio
import json
import random
import uuid
from collections.abc import Sequence
from datetime import timedelta

from nats.errors import Error as NatsError
from nats.js.client import JetStreamContext

from clock.time_source import wall_now
from schemas.wire.subjects import datapoint_subject
from tests.faults.busy_rules import DATAPOINT_KEYS
from tocsin.client.producer import Producer
from tocsin.core.bus import connect_bus
from tocsin.core.settings import Settings

_GROUPS = 4
_INVALID = (
    b"nonsense",
    b'{"value": null}',
    b'{"value": 1, "ts": "2020-01-01T00:00:00Z"}',
    b'{"value": 1, "ts": "2999-01-01T00:00:00Z"}',
    b'{"batch": "none"}',
)


class BusyLoad:
    """The load of all owners. `pace_s` is the mean time between two rounds of an owner."""

    def __init__(self, settings: Settings, owners: Sequence[str], seed: int, pace_s: float = 1.0) -> None:
        self._settings = settings
        self._owners = owners
        self._seed = seed
        self._pace_s = pace_s
        self._running_groups = [asyncio.Event() for _ in range(_GROUPS)]
        self.ended = asyncio.Event()
        self.sent = 0
        self.invalid = 0
        self.emitted = 0

    async def run(self) -> None:
        for event in self._running_groups:
            event.set()
        bus = await connect_bus(self._settings, "load")
        try:
            async with Producer(self._settings, timeout_s=120.0) as producer, asyncio.TaskGroup() as group:
                for number, owner in enumerate(self._owners):
                    group.create_task(
                        _Owner(self, producer, bus.jetstream(timeout=5), owner, number % _GROUPS).run()
                    )
                group.create_task(self._stop_and_resume())
        finally:
            await bus.close()

    async def rest(self, seconds: float) -> None:
        """Wait for a time, or until the load ends."""
        try:
            await asyncio.wait_for(self.ended.wait(), seconds)
        except TimeoutError:
            return

    async def wait_for_group(self, group: int) -> None:
        await self._running_groups[group].wait()

    async def _stop_and_resume(self) -> None:
        """Stop all producers of a group at once, from time to time."""
        chance = random.Random(f"{self._seed}/groups")
        while not self.ended.is_set():
            await self.rest(chance.uniform(20, 60))
            group = self._running_groups[chance.randrange(_GROUPS)]
            group.clear()
            await self.rest(chance.uniform(3, 12))
            group.set()

    def chance_of(self, owner: str) -> random.Random:
        return random.Random(f"{self._seed}/{owner}")

    @property
    def settings(self) -> Settings:
        return self._settings

    @property
    def pace_s(self) -> float:
        return self._pace_s


class _Owner:
    def __init__(
        self, load: BusyLoad, producer: Producer, js: JetStreamContext, owner: str, group: int
    ) -> None:
        self._load = load
        self._producer = producer
        self._js = js
        self._owner = owner
        self._group = group
        self._chance = load.chance_of(owner)
        self._levels = {key: self._chance.uniform(30, 70) for key in DATAPOINT_KEYS}
        self._paused_rounds = dict.fromkeys(DATAPOINT_KEYS, 0)
        """The rounds in which a series still sends nothing."""

    async def run(self) -> None:
        chance, load = self._chance, self._load
        pace_s = load.pace_s * chance.uniform(0.6, 1.4)
        while not load.ended.is_set():
            await load.rest(chance.uniform(0.2, 1.8) * pace_s)
            await load.wait_for_group(self._group)
            choice = chance.random()
            if choice < 0.01:
                await load.rest(chance.uniform(2, 15))
            elif choice < 0.02:
                for _ in range(15):
                    await self._send_round()
            elif choice < 0.03:
                await self._send_invalid()
            elif choice < 0.06:
                await self._producer.emit("trip", owner=self._owner, payload={"on": chance.random() < 0.5})
                load.emitted += 1
            await self._send_round()

    async def _send_round(self) -> None:
        for key in DATAPOINT_KEYS:
            if self._chance.random() < 0.01:
                self._paused_rounds[key] = self._chance.randrange(2, 15)
            if self._paused_rounds[key]:
                self._paused_rounds[key] -= 1
            elif self._chance.random() < 0.8:
                await self._send(key)

    async def _send(self, key: str) -> None:
        chance = self._chance
        level = self._levels[key] + chance.gauss(0, 3) + (50 - self._levels[key]) * 0.05
        self._levels[key] = 80.0 if chance.random() < 0.01 else level
        value = (
            round(self._levels[key], 2)
            if key != "door"
            else chance.choice(["open", "open", "open", "closed"])
        )
        wrong = chance.random()
        ts = None
        if wrong < 0.1:
            ts = wall_now() + timedelta(seconds=chance.choice([-3600, -5, -0.5, 0, 30, 120]))
        labels = {"zone": chance.choice(["north", "south"])} if chance.random() < 0.8 else None
        await self._producer.send(self._owner, key, value, ts=ts, labels=labels)
        self._load.sent += 1

    async def _send_invalid(self) -> None:
        """Send an invalid message. The stream stores it once, also if it is sent again."""
        key = self._chance.choice(DATAPOINT_KEYS[:-1])
        subject = datapoint_subject(self._load.settings.subjects, self._owner, key)
        body = self._chance.choice((*_INVALID, json.dumps({"value": "warm"}).encode()))
        headers = {"Nats-Msg-Id": str(uuid.UUID(int=self._chance.getrandbits(128)))}
        while True:
            try:
                await self._js.publish(subject, body, headers=headers)
                break
            except (NatsError, OSError, TimeoutError):
                await self._load.rest(0.2)
        self._load.invalid += 1
