"""An instance with two systems over two partitions that are read at their own pace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rules.engine import Arrival
from rules.health.decide import HealthDecider
from schemas.wire.calculated import HEALTH_KEY
from tests.clock.clock_setup import at
from tests.rules.alarms.series import Live
from tests.rules.apply.apply_setup import ACTOR, apply_only
from tests.sql import all_rows
from tocsin.core.settings import Settings

TYPE = "---\ndatapoint_type:\n  name: load\n  key: dsp.*\n  interval: {}\n"
HOT = "---\nevent_rule:\n  name: hot\n  datapoint: dsp.*\n  above: 65\n  clear: value < 60.0\n  severity: high\n"
WARM = "---\nevent_rule:\n  name: warm\n  datapoint: dsp.a\n  above: 40\n"
QUIET = "---\nevent_rule:\n  name: quiet\n  datapoint: dsp.b\n  absent: true\n  severity: high\n"
ILL = '---\nevent_rule:\n  name: ill\n  datapoint: system.health\n  fire: value != "ok"\n  severity: high\n'
RULES = [
    TYPE.format("4s") + HOT + QUIET + ILL,
    TYPE.format("4s") + HOT + "  for: 6s\n  keep_firing_for: 3s\n" + WARM + ILL + "  for: 5s\n",
    TYPE.format("2s") + WARM + "  for: 3s\n" + HOT + "  cooldown: 20s\n" + QUIET + "  for: 2s\n" + ILL,
    HOT + "  keep_firing_for: 5s\n" + WARM + ILL + "  keep_firing_for: 4s\n",
    TYPE.format("4s") + "  on_stale: hold\n" + HOT + QUIET + ILL,
]
UNHANDLED = """
select distinct owner from tocsin.current_value
where freshness = 'stale' and handled_stale_since is distinct from stale_since
"""


class Systems(Live):
    """Two partitions that are read at their own pace. `now` holds the time of each."""

    partitions = 2
    seq = 0
    applied_s = 0.5

    async def arrive(self, arrivals: Sequence[Arrival]) -> None:
        await self.receive(arrivals)
        await self.worker.execute(
            "update tocsin.lane_partition set last_seq = %s where lane = 'data' and partition = %s",
            (arrivals[-1].seq, self.partition_of(arrivals[-1].owner)),
        )

    async def apply_only(self, text: str, seconds: float) -> None:
        """Apply these documents and remove all others."""
        await apply_only(self.worker, text, replace(ACTOR, now=at(seconds)))

    def partition_of(self, owner: str) -> int:
        return int(owner.endswith("-far"))

    def begin_example(self, example: int) -> None:
        self.owners = [f"plant-{example}", f"plant-{example}-far"]
        self.names = [f"hall-{example}", f"site-{example}"]
        self.now = [example * 1000.0, example * 1000.0]

    def documents(self, choice: Any) -> str:
        """The text of the documents."""
        rules, hall, site = choice
        text: str = RULES[rules]
        if "load" not in text:
            hall, site = (
                [member for member in members if "type" not in member[1]] for members in (hall, site)
            )
        for name, members in zip(self.names, (hall, site), strict=True):
            lines = [
                f"    - {{owner: {self.owners[far]}, {series}, required: {str(required).lower()}}}\n"
                for far, series, required in members
            ]
            if "required: true" in "".join(lines):
                text += f"---\nsystem:\n  name: {name}\n  members:\n" + "".join(lines)
        return text

    async def step(self, what: str, argument: Any) -> None:
        if what == "send":
            far, datapoints = argument
            batch = []
            for gap, value, key in datapoints:
                self.now[far] += gap
                self.seq += 1
                now = at(self.now[far])
                batch.append(Arrival(now, self.seq, self.owners[far], f"dsp.{key}", value, now, {}))
            await self.arrive(batch)
        elif what == "wait":
            self.now[argument] += 7
            # A datapoint that is sent at `now` has not been stored yet.
            await self.read_until(at(self.now[argument] - 0.001), int(argument))
        elif what == "apply":
            # Each apply has an instant of its own.
            self.applied_s += 0.001
            await self.apply_only(self.documents(argument), max(self.now) + self.applied_s)
        elif what == "clock":
            await self.run_clock(max(self.now))
        elif what == "read calculated":
            for far in (0, 1):
                await self.receive_staleness(self.now[far], self.owners[far])
        elif what == "deliver":
            await self.deliver()

    async def decide(self) -> None:
        """Decide health, two observations at a time."""
        await HealthDecider(Settings(), chunk=2).decide(self.worker)

    async def deliver(self) -> int:
        """Send the health datapoints to the data lane, in the partition of the system."""
        rows = await all_rows(
            self.worker,
            "select c.* from tocsin.datapoint_calculated c where c.kind = 'health' and c.seq > coalesce("
            "(select max((d.labels ->> 'seq')::bigint) from tocsin.datapoint d where d.key = %s), 0) order by seq",
            (HEALTH_KEY,),
        )
        for row in rows:
            self.now[0] += 0.25
            self.seq += 1
            labels = {"seq": str(row["seq"])}
            health = Arrival(
                at(self.now[0]),
                self.seq,
                row["owner"],
                HEALTH_KEY,
                row["payload"]["health"],
                row["ts"],
                labels,
            )
            await self.arrive([health])
        return len(rows)

    async def settle(self) -> None:
        """Run until nothing is left to happen."""
        while True:
            self.now = [max(self.now) + 50] * 2
            await self.read_until(at(self.now[0]))
            await self.run_clock(self.now[0])
            while unhandled := await all_rows(self.worker, UNHANDLED):
                for row in unhandled:
                    await self.receive_staleness(self.now[0], row["owner"])
                await self.run_clock(self.now[0])
            await self.decide()
            if not await self.deliver():
                return
