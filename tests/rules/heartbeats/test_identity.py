"""I5: a replay of heartbeats equals the recording, whatever was slow, killed, late or applied."""

from __future__ import annotations

import itertools
from typing import cast

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from rules.engine import Arrival
from schemas.wire.check_in import check_in_key
from tests.clock.clock_setup import at
from tests.rules.replay.backtest.recorded_instance import RecordedInstance, count_records, replayed
from tests.sessions import Sessions
from tocsin.core.db import Connection
from tocsin.core.settings import Settings

HEARTBEAT = "---\nheartbeat:\n  name: job\n  owners: [{owner}, other]\n  {keys}\n"
UNRELATED = "---\nevent_rule:\n  name: hot\n  datapoint: dsp.a\n  above: 60\n"
KEYS = [
    "every: 20s\n  grace: 5s",
    "every: 20s\n  grace: 5s\n  max_duration: 12s",
    "every: 35s\n  grace: 0s\n  severity: high",
    'cron: "* * * * *"\n  grace: 10s',
    'cron: "* * * * *"\n  grace: 10s\n  early: 25s\n  max_duration: 30s',
    'cron: "*/2 * * * *"\n  grace: 70s',
]
CHECK_IN = st.tuples(
    st.integers(1, 25), st.sampled_from(["start", "success", "fail"]), st.sampled_from(["", "a", "b"])
)
CheckInAfter = tuple[int, str, str]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.lists(CHECK_IN, min_size=1, max_size=3)),
        st.tuples(st.just("send late"), CHECK_IN),
        st.tuples(st.just("fall behind"), st.lists(CHECK_IN, min_size=1, max_size=3)),
        st.tuples(st.sampled_from(["apply", "apply unread"]), st.sampled_from(KEYS)),
        st.tuples(st.sampled_from(["remove", "wait", "wait", "resolve"]), st.just(None)),
        st.tuples(st.sampled_from(["outage", "unread outage"]), st.integers(3, 150)),
        st.tuples(st.just("die reading"), st.integers(0, 24)),
    ),
    min_size=3,
    max_size=10,
)
_examples = itertools.count(1)


@pytest.fixture
async def live(settings: Settings, sessions: Sessions) -> RecordedInstance:
    instance = RecordedInstance(settings, sessions)
    await instance.begin()
    return instance


def publish(live: RecordedInstance, now: float, owner: str, status: str, run: str, late_s: float = 0) -> None:
    labels = {"run": run} if run else {}
    seq = live.arrival(now, 0.0, "unused", owner).seq
    live.publish([Arrival(at(now), seq, owner, check_in_key("job"), status, at(now - late_s), labels)])


async def run_steps(  # noqa: C901 - one branch per step
    live: RecordedInstance, steps: list[tuple[str, object]], owner: str, began: float
) -> float:
    now = began
    for what, argument in steps:
        if what in ("send", "fall behind"):
            for seconds, status, run in cast(list[CheckInAfter], argument):
                now += seconds
                publish(live, now, owner, status, run)
            if what == "send":
                await live.read()
        elif what == "send late":
            seconds, status, run = cast(CheckInAfter, argument)
            now += seconds
            publish(live, now, owner, status, run, late_s=60)
            await live.read()
        elif what in ("apply", "apply unread", "remove"):
            now += 1
            if what == "apply":
                await live.read_until(at(now))
            text = HEARTBEAT.format(owner=owner, keys=argument) if argument else UNRELATED
            await live.apply_only(text, now + 0.5)
        elif what == "resolve":
            await live.resolve_alarms(owner, now)
        elif what == "wait":
            now += 40
            await live.read_until(at(now))
        elif what in ("outage", "unread outage"):
            now += cast(int, argument)
            live.end_gap(now)
            if what == "outage":
                await live.read()
        elif what == "die reading":
            now += 5
            publish(live, now, owner, "start", "c")
            await live.die_reading(cast(int, argument))
    return now


@settings(max_examples=20, phases=[Phase.generate])
@given(st.sampled_from(KEYS), STEPS)
async def test_a_replay_of_heartbeats_equals_the_recording(
    settings: Settings,
    connection: Connection,
    live: RecordedInstance,
    keys: str,
    steps: list[tuple[str, object]],
) -> None:
    example = next(_examples)
    owner, began = f"host-{example}", example * 3000.0
    await live.apply_only(HEARTBEAT.format(owner=owner, keys=keys), began)
    now = await run_steps(live, steps, owner, began)
    await live.settle(now + 200)
    header, result = await replayed(settings, at(0), at(now + 200))
    assert header.is_whole
    assert header.horizon("data", 0) >= at(now + 150), "nothing is left undecided"
    assert not result.mismatches, "\n".join(map(str, result.mismatches))
    assert (len(result.recorded_transitions), result.staleness_count) == await count_records(connection)
    assert result.recorded_transitions == result.replayed_transitions


async def test_a_window_that_begins_in_the_middle_continues_the_heartbeat(
    settings: Settings, live: RecordedInstance
) -> None:
    """The job failed on the first day. On the second day it succeeds, and then stays away."""
    day = 86_400.0
    await live.apply_only(HEARTBEAT.format(owner="host-1", keys='cron: "0 2 * * *"\n  grace: 10m'), 0)
    publish(live, 60, "host-1", "fail", "")
    await live.read()
    await live.settle(9 * day)
    await live.set_time(9 * day)
    publish(live, 9 * day + 60, "host-1", "success", "")
    await live.read()
    await live.settle(11 * day)
    header, result = await replayed(settings, at(9 * day), at(11 * day))
    assert not header.is_whole
    assert not result.mismatches, "\n".join(map(str, result.mismatches))
    of_host = [transition.kind for transition in result.replayed_transitions if transition.owner == "host-1"]
    assert of_host == ["resolved", "opened"]
