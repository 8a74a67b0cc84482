"""I5 for systems: health is derived again, exactly, whatever partition lagged behind, and so are the alarms over it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from rules.apply import apply, preview
from rules.apply import systems as applying_systems
from rules.documents.load import load_text
from rules.engine import Arrival
from rules.health import store as standing
from rules.health import systems
from rules.health.decide import HealthDecider
from schemas.wire.calculated import HEALTH_KEY
from tests.clock.heartbeats import at
from tests.rules.alarms.series import Live
from tests.rules.apply.apply_setup import ACTOR
from tests.rules.replay.backtest.recorded_instance import replayed
from tests.sessions import Sessions
from tests.sql import all_rows, one_row
from tocsin.core.db import Connection
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
MEMBER = st.tuples(st.booleans(), st.sampled_from(["key: dsp.a", "key: dsp.b", "type: load"]), st.booleans())
SYSTEM = st.lists(MEMBER, min_size=1, max_size=4, unique_by=lambda one: one[:2]).filter(
    lambda members: any(required for _, _, required in members)
)
DOCUMENTS = st.tuples(st.integers(0, len(RULES) - 1), SYSTEM, SYSTEM, st.booleans())
DATAPOINT = st.tuples(
    st.sampled_from([0, 0, 1, 3, 7, 14]), st.sampled_from([1.0, 50.0, 62.0, 71.0]), st.sampled_from("ab")
)
SEND = st.tuples(st.just("send"), st.tuples(st.booleans(), st.lists(DATAPOINT, min_size=1, max_size=4)))
STEPS = st.lists(
    st.one_of(
        SEND,
        SEND,
        SEND,
        st.tuples(st.just("wait"), st.booleans()),
        st.tuples(st.just("apply"), DOCUMENTS),
        st.tuples(st.sampled_from(["clock", "hear", "deliver"]), st.just(None)),
    ),
    min_size=4,
    max_size=14,
)
UNHEARD = """
select distinct owner from tocsin.current_value
where freshness = 'stale' and handled_stale_since is distinct from stale_since
"""
_examples = itertools.count(1)


class Systems(Live):
    """Two partitions that are read at their own pace: `now` of each."""

    partitions = 2
    seq = 0
    applied_s = 0.5

    async def arrive(self, arrivals: Sequence[Arrival]) -> None:
        await self.take(arrivals)
        await self.worker.execute(
            "update tocsin.lane_partition set last_seq = %s where lane = 'data' and partition = %s",
            (arrivals[-1].seq, self.partition_of(arrivals[-1].owner)),
        )

    async def only(self, text: str, seconds: float) -> None:
        """These documents from now on, and no others."""
        loaded = load_text(text, anchor=at(0))
        removed = (await preview(self.worker, loaded, at(seconds), prune=True)).plan.removed
        await apply(self.worker, loaded, replace(ACTOR, now=at(seconds)), removing=removed)

    def partition_of(self, owner: str) -> int:
        return int(owner.endswith("-far"))

    def begin_example(self, example: int) -> None:
        self.owners = [f"plant-{example}", f"plant-{example}-far"]
        self.names = [f"hall-{example}", f"site-{example}"]
        self.now = [example * 1000.0, example * 1000.0]

    def documents(self, given: Any) -> str:
        """`nested`: the site has the health of the hall among its members."""
        rules, hall, site, nested = given
        text: str = RULES[rules]
        if "load" not in text:
            hall, site = ([one for one in members if "type" not in one[1]] for members in (hall, site))
        for name, members in zip(self.names, (hall, site), strict=True):
            lines = [
                f"    - {{owner: {self.owners[far]}, {series}, required: {str(required).lower()}}}\n"
                for far, series, required in members
            ]
            if nested and name == self.names[1]:
                lines.append(f"    - {{owner: {self.names[0]}, key: {HEALTH_KEY}}}\n")
            if "required: true" in "".join(lines):
                text += f"---\nsystem:\n  name: {name}\n  members:\n" + "".join(lines)
        return text

    async def step(self, what: str, told: Any) -> None:
        if what == "send":
            far, datapoints = told
            batch = []
            for gap, value, key in datapoints:
                self.now[far] += gap
                self.seq += 1
                now = at(self.now[far])
                batch.append(Arrival(now, self.seq, self.owners[far], f"dsp.{key}", value, now, {}))
            await self.arrive(batch)
        elif what == "wait":
            self.now[told] += 7
            # Whatever is sent at `now` has not been stored yet.
            await self.read_until(at(self.now[told] - 0.001), int(told))
        elif what == "apply":
            # No two applies are of one instant.
            self.applied_s += 0.001
            await self.only(self.documents(told), max(self.now) + self.applied_s)
        elif what == "clock":
            await self.run_clock(max(self.now))
        elif what == "hear":
            for far in (0, 1):
                await self.hear(self.now[far], self.owners[far])
        elif what == "deliver":
            await self.deliver()

    async def decide(self) -> None:
        """Two facts at a time."""
        await HealthDecider(Settings(), at_once=2).decide(self.worker)

    async def deliver(self) -> int:
        """Health comes back through the stream, in the partition of the system."""
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

    async def rest(self) -> None:
        """Until nothing is left that could still happen."""
        while True:
            self.now = [max(self.now) + 50] * 2
            await self.read_until(at(self.now[0]))
            await self.run_clock(self.now[0])
            while unheard := await all_rows(self.worker, UNHEARD):
                for row in unheard:
                    await self.hear(self.now[0], row["owner"])
                await self.run_clock(self.now[0])
            await self.decide()
            if not await self.deliver():
                return


@pytest.fixture
async def live(connection: Connection, sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> Systems:
    """Of the members that are not ok only the worst is shown."""
    for module in (standing, systems):
        monkeypatch.setattr(module, "SHOWN", 1)
    found = Systems(connection, await sessions("clock"))
    await found.begin()
    return found


@settings(
    max_examples=15,
    phases=[Phase.generate],
)
@given(DOCUMENTS, STEPS)
async def test_health_is_replayed_as_it_was_whichever_partition_was_read_first(
    settings: Settings, connection: Connection, live: Systems, first: Any, steps: list[tuple[str, Any]]
) -> None:
    example = next(_examples)
    live.begin_example(example)
    await live.only(live.documents(first), live.now[0])
    for what, told in steps:
        await live.step(what, told)
        # Too early, more often than not: what is said must stand for ever.
        await live.decide()
    await live.rest()
    row = await one_row(connection, "select count(*) as facts from tocsin.member_observation")
    assert row["facts"] == 0, "all of it is decided"
    story, found = await replayed(settings, at(0), at(max(live.now)))
    assert story.horizon("health", 0) >= at(max(live.now) - 50), "and compared"
    assert not found.differences, "\n".join(map(str, found.differences))
    row = await one_row(
        connection, "select count(*) as told from tocsin.datapoint_calculated where kind = 'health'"
    )
    assert found.health == row["told"]
    assert found.then == found.now


@pytest.mark.parametrize("clock_is_late", [False, True])
async def test_what_became_of_an_owner_that_was_no_member_for_a_while_is_known(
    settings: Settings, connection: Connection, live: Systems, clock_is_late: bool
) -> None:
    """Its alarm ended meanwhile, or should have."""
    live.begin_example(next(_examples))
    far, near = (3, [(True, "key: dsp.a", True)]), (3, [(False, "key: dsp.a", True)])
    for what, told in [
        ("apply", (*far, [], False)),
        ("send", (True, [(1, 71.0, "a")])),
        ("apply", (*near, [], False)),
        ("send", (True, [(1, 1.0, "a")])),
        ("wait", True),
        ("deliver" if clock_is_late else "clock", None),
        ("apply", (*far, [], False)),
    ]:
        await live.step(what, told)
    await live.rest()
    rows = await all_rows(connection, "select payload from tocsin.datapoint_calculated where kind = 'health'")
    assert [row["payload"]["health"] for row in rows] == ["unknown", "outage", "unknown", "ok"]
    _, found = await replayed(settings, at(0), at(max(live.now)))
    assert not found.differences, "\n".join(map(str, found.differences))
    assert found.health == 4


async def test_a_sustain_that_fires_while_its_owner_becomes_a_member_is_counted_once(
    settings: Settings, connection: Connection, live: Systems, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The apply has read how the owner stands, and is about to write it; it was no member, so nobody notes the fire."""
    live.begin_example(next(_examples))
    far, near = (1, [(True, "key: dsp.a", True)]), (1, [(False, "key: dsp.a", True)])
    await live.step("apply", (*near, [], False))
    await live.step("send", (True, [(1, 71.0, "a")]))
    await live.step("wait", True)
    replacing = applying_systems._replace

    async def meanwhile(*given: Any) -> None:
        await live.run_clock(max(live.now))
        await replacing(*given)

    monkeypatch.setattr(applying_systems, "_replace", meanwhile)
    await live.step("apply", (*far, [], False))
    fired = await one_row(connection, "select opened_at from tocsin.alarm where event_rule = 'hot'")
    assert fired["opened_at"] is not None, "the clock waited for nobody"
    await live.rest()
    rows = await all_rows(connection, "select payload from tocsin.datapoint_calculated where kind = 'health'")
    assert [row["payload"]["health"] for row in rows] == ["unknown", "outage"]
    _, found = await replayed(settings, at(0), at(max(live.now)))
    assert not found.differences, "\n".join(map(str, found.differences))
    assert found.health == 2
