"""I5 for rules over alarms: a replay gives the recorded alarms, whatever was slow, killed or applied."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import suppress
from typing import Any, cast

import psycopg
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from rules.alarms.over_events import EventAlarms
from rules.lanes.batch_size import BatchSize
from rules.lanes.drain import Drain
from rules.lanes.lease import Leases
from rules.lanes.record_lane import RecordLane
from tests.clock.clock_setup import at
from tests.killable_session import KillableSession
from tests.rules.replay.backtest.recorded_instance import RecordedInstance, count_records, replayed
from tests.sessions import Sessions
from tocsin.core.db import Connection, statement
from tocsin.core.settings import Settings

SERIES = """
event_rule: {name: hot, datapoint: dsp.a, above: 65, for: 3s}
---
event_rule: {name: slow, datapoint: dsp.b, below: 60}
---
event_rule: {name: any, datapoint: dsp.*, above: 70, per: owner}
"""
TEXTS = [
    SERIES + "---\nevent_rule: {name: both, alarms: {all_of: [hot, slow]}}\n",
    SERIES
    + "---\nevent_rule: {name: both, alarms: {any_of: [hot, slow], none_of: [any]}, for: 4s}\n"
    + "---\nevent_rule: {name: top, alarms: {any_of: [both]}, keep_firing_for: 5s}\n",
    SERIES
    + "---\nevent_rule: {name: two, alarms: {at_least: 2, of: [hot, slow, any]}, cooldown: 9s}\n"
    + "---\nevent_rule: {name: both, alarms: {all_of: [hot, two]}, keep_firing_for: 2s}\n",
    SERIES.replace("below: 60", "below: 55") + "---\nevent_rule: {name: both, alarms: {any_of: [slow]}}\n",
]
DATAPOINT = st.tuples(
    st.integers(0, 9), st.sampled_from([50.0, 58.0, 66.0, 71.0]), st.sampled_from(["dsp.a", "dsp.b"])
)
STEPS = st.lists(
    st.one_of(
        *[st.tuples(st.just("send"), st.lists(DATAPOINT, min_size=1, max_size=4))] * 3,
        st.tuples(st.just("apply"), st.sampled_from(TEXTS)),
        st.tuples(st.sampled_from(["clock", "resolve", "records", "wait"]), st.just(None)),
        st.tuples(st.just("some records"), st.integers(1, 4)),
        st.tuples(st.just("die"), st.integers(0, 20)),
    ),
    min_size=4,
    max_size=14,
)
_RECORD = ("record", 0)
_AHEAD_S = 12
_examples = itertools.count(1)


class BothLanes(RecordedInstance):
    """A worker that reads the record lane as well, when it is told to, and may die while it does."""

    async def begin(self) -> None:
        await super().begin()
        self._records = RecordLane(self._settings, [EventAlarms()])
        await self._watch.execute(statement("rules.lanes/begin_record_lane"))
        await self._replace_reader()

    async def _replace_reader(self) -> None:
        self._reader = await self._session("reader")
        await self._reader.execute(
            "update tocsin.lane_partition set held_until = tocsin.instant() where lane = 'record'"
        )
        partition = await Leases(self._reader, 60.0).take(_RECORD)
        assert partition is not None
        bus = cast(Any, None)
        self._record_drain = Drain(
            self._settings, bus, self._records, partition, asyncio.Semaphore(1), BatchSize()
        )

    async def read_records(self, limit: int = 1000, session: Connection | None = None) -> bool:
        """Read the records after the position; whether there were any."""
        after = self._record_drain._partition.position.last_seq
        messages = await self._records.read_stored(self._watch, after, limit)
        if messages:
            await self._record_drain._commit(session or self._reader, messages)
        return bool(messages)

    async def read_all_records(self) -> None:
        while await self.read_records():
            pass

    async def die_reading_records(self, statements: int) -> None:
        killable = KillableSession(self._reader, self._watch, statements)
        with suppress(psycopg.OperationalError):
            await self.read_records(session=cast(Connection, killable))
        await self._reader.close()
        await self._replace_reader()

    async def set_time(self, seconds: float) -> None:
        await super().set_time(seconds)
        await self._reader.execute("select set_config('tocsin.now', %s, false)", (at(seconds).isoformat(),))


@pytest.fixture
async def live(settings: Settings, sessions: Sessions) -> BothLanes:
    instance = BothLanes(settings, sessions)
    await instance.begin()
    return instance


async def run_step(live: BothLanes, what: str, argument: Any, owner: str, now: float) -> float:
    if what == "send":
        for seconds, value, key in argument:
            now += seconds
            live.publish([live.arrival(now, value, key, owner)])
        await live.set_time(now)
        await live.read()
    elif what == "apply":
        now += 1
        await live.set_time(now)
        await live.apply_only(argument, now)
    elif what == "wait":
        now += 7
        await live.set_time(now)
        await live.read_until(at(now))
    elif what == "resolve":
        await live.resolve_alarms(owner, now)
    elif what == "clock":
        await live.run_clock(now + _AHEAD_S)
    elif what == "records":
        await live.read_all_records()
    elif what == "some records":
        await live.read_records(argument)
    else:
        await live.die_reading_records(argument)
    return now


async def settle(live: BothLanes, seconds: float) -> None:
    await live.set_time(seconds)
    await live.settle(seconds)
    for _ in range(3):
        await live.read_all_records()
        await live._reader.execute(
            "update tocsin.lane_partition set watermark = %s where lane = 'record'", (at(seconds),)
        )
        await live.run_clock(seconds)


@settings(max_examples=15, phases=[Phase.generate], deadline=None)
@given(st.sampled_from(TEXTS), STEPS)
async def test_a_replay_gives_the_alarms_over_alarms_that_were_recorded(
    settings: Settings, connection: Connection, live: BothLanes, text: str, steps: list[tuple[str, Any]]
) -> None:
    """Each example has its own owner and its own thousand seconds. Each one replays all so far."""
    example = next(_examples)
    owner, now = f"plant-{example}", example * 1000.0
    await live.set_time(now)
    await live.apply_only(text, now)
    for what, argument in steps:
        now = await run_step(live, what, argument, owner, now)
    await settle(live, now + 100)
    header, result = await replayed(settings, at(0), at(now + 200))
    assert header.horizon("record", 0) >= at(now + 90), "nothing is left undecided"
    assert not result.mismatches, "\n".join(map(str, result.mismatches))
    assert len(result.recorded_transitions) == (await count_records(connection))[0]
    assert result.recorded_transitions == result.replayed_transitions


async def test_an_operator_acts_after_the_rule_that_the_lane_has_begun(
    settings: Settings, live: BothLanes
) -> None:
    """The operator resolves the alarm that the apply itself opened."""
    now = 1000.0
    await live.set_time(now)
    await live.apply_only(SERIES, now)
    for what, argument in [
        ("send", [(1, 50.0, "dsp.b")]),
        ("records", None),
        ("apply", TEXTS[3]),
        ("records", None),
        ("resolve", None),
        ("records", None),
    ]:
        now = await run_step(live, what, argument, "plant-1", now)
    await settle(live, now + 100)
    _, result = await replayed(settings, at(0), at(now + 200))
    assert not result.mismatches, "\n".join(map(str, result.mismatches))
    assert [(one.rule, one.kind) for one in result.replayed_transitions] == [
        ("slow", "opened"),
        ("both", "opened"),
    ], "both were resolved by the operator"
