"""The load: rounds of datapoints of watched series, each acknowledged, and the times of the rounds.

Guarantee: `acknowledged` counts the rounds that JetStream has acknowledged, so a worker must store each
of their datapoints. The producer never pauses by itself, so a stale series is a false one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from datetime import timedelta

from tocsin.client.producer import Producer
from tocsin.core.settings import Settings

OWNERS = [f"plant-{number}" for number in range(10)]
KEYS = [f"temp.{number}" for number in range(5)]
HOT_KEY = KEYS[0]
HOT = 100_000
HOLDS_FOR = timedelta(seconds=2)
_ROUNDS_PER_PHASE = 4
_ROUND_S = 1.0
_TIMEOUT_S = 240.0

RULES = """
datapoint_type: {{name: temperature, key: temp.*, interval: 2s, tolerance: 3}}
---
event_rule: {{name: hot, datapoint: temp.0, fire: value >= 100000.0, clear: value < 100000.0, for: 2s}}
---
action:
  name: notify
  webhook: {{url: "http://127.0.0.1:{port}/", payload: {{event: "{{{{ id }}}}"}}}}
  retry: {{attempts: 20, initial_interval: 200ms, max_interval: 2s}}
---
action_rule:
  name: notify-fires
  on: event
  when: 'type == "schedule-fired" && schedule == "pulse-none"'
  action: notify
"""


class SeriesLoad:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.acknowledged = 0
        self.longest_pause_s = 0.0
        """The longest time between two rounds for which this process itself is to blame."""
        self.ended = asyncio.Event()

    async def run(self) -> None:
        async with Producer(self._settings, timeout_s=_TIMEOUT_S) as producer:
            while not self.ended.is_set():
                began_s = time.monotonic()
                for owner in OWNERS:
                    for key in KEYS:
                        await producer.send(owner, key, value_of(key, self.acknowledged))
                await producer.flush()
                self.acknowledged += 1
                await self._rest(_ROUND_S - (time.monotonic() - began_s))

    async def end(self) -> None:
        self.ended.set()

    async def _rest(self, seconds: float) -> None:
        began_s = time.monotonic()
        try:
            await asyncio.wait_for(self.ended.wait(), max(seconds, 0.0))
        except TimeoutError:
            self.longest_pause_s = max(self.longest_pause_s, time.monotonic() - began_s)


def value_of(key: str, number: int) -> int:
    """The value of a round: its number, and on one series of each owner a limit that it is above in turns."""
    is_hot = key == HOT_KEY and (number // _ROUNDS_PER_PHASE) % 2 == 1
    return number + (HOT if is_hot else 0)


def acknowledged_datapoints(rounds: int) -> Iterator[tuple[str, str, int]]:
    for number in range(rounds):
        for owner in OWNERS:
            for key in KEYS:
                yield owner, key, number
