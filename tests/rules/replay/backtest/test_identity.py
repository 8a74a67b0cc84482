"""I5: a replay with the rules of the time equals the recording, whatever was slow, killed or applied."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import cast

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.clock.clock_setup import at
from tests.rules.replay.backtest.recorded_instance import RecordedInstance, count_records, replayed
from tests.rules.replay.backtest.series_rules import HOT, QUIET, TYPE
from tests.sessions import Sessions
from tocsin.core.db import Connection
from tocsin.core.settings import Settings

STEEP = "---\nevent_rule:\n  name: steep\n  datapoint: dsp.a\n  fire: rate > 2.0 || value > 70.0\n"
MEAN = "---\nevent_rule:\n  name: mean\n  datapoint: dsp.*\n  above: 63\n  window: {over: 20s, reduce: avg}\n"
STRICT = "---\nevent_rule:\n  name: strict\n  datapoint: dsp.*\n  below: 60\n  no_data: alarm\n"
TEXTS = [
    TYPE.format("4s") + HOT + QUIET + "  for: 5s\n",
    TYPE.format("8s") + HOT + "  for: 6s\n  keep_firing_for: 3s\n" + QUIET + STEEP,
    TYPE.format("2s") + HOT + "  cooldown: 20s\n" + STRICT + "  no_data_for: 2s\n" + MEAN,
    TYPE.format("4s") + "  on_stale: alarm\n" + STEEP + "  for: 2s\n" + HOT + "  enabled: false\n",
    QUIET + MEAN,
    TYPE.format("4s").replace("dsp.*", "dsp.a") + STRICT + HOT + "  where: labels.zone == 'north'\n",
]
KEYS = st.sampled_from(["dsp.a", "dsp.b"])
DATAPOINT = st.tuples(st.integers(0, 12), st.sampled_from([50.0, 62.5, 66.0, 71.0]), KEYS, st.booleans())
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.lists(DATAPOINT, min_size=1, max_size=4)),
        st.tuples(st.just("send"), st.lists(DATAPOINT, min_size=1, max_size=4)),
        st.tuples(st.just("fall behind"), st.lists(DATAPOINT, min_size=1, max_size=4)),
        st.tuples(st.sampled_from(["apply", "apply unread"]), st.sampled_from(TEXTS)),
        st.tuples(st.sampled_from(["clock", "read calculated", "wait", "freeze"]), st.just(None)),
        st.tuples(st.just("die reading"), st.integers(0, 24)),
        st.tuples(st.just("die firing"), st.integers(0, 24)),
    ),
    min_size=3,
    max_size=10,
)
# The clock is ahead of the workers by this much, and must not fire for what they have not read.
AHEAD_S = 12
_examples = itertools.count(1)


@pytest.fixture
async def live(settings: Settings, sessions: Sessions) -> RecordedInstance:
    instance = RecordedInstance(settings, sessions)
    await instance.begin()
    return instance


async def run_steps(
    live: RecordedInstance, steps: list[tuple[str, object]], owner: str, began: float
) -> float:
    now = began
    for what, argument in steps:
        if what in ("send", "fall behind"):
            batch = []
            for gap, value, key, north in argument:  # type: ignore[attr-defined]
                now += gap
                labels = {"zone": "north"} if north else {}
                batch.append(live.arrival(now, value, key, owner, **labels))
            live.publish(batch)
            await (live.read() if what == "send" else live.run_clock(now + AHEAD_S))
        elif what == "apply":
            now += 1
            await live.read_until(at(now))
            await live.apply_only(str(argument), now + 0.5)
        elif what == "apply unread":
            now += 1
            await live.apply_only(str(argument), now + 0.5)
        elif what == "clock":
            await live.run_clock(now + AHEAD_S)
        elif what == "read calculated":
            await live.read_calculated(now)
        elif what == "wait":
            now += 7
            await live.read_until(at(now))
        elif what == "freeze":
            live.publish([live.arrival(now, 66.0, "dsp.b", owner)])
            await live.freeze_reading()
        elif what == "die reading":
            now += 5
            live.publish([live.arrival(now, 71.0, key, owner) for key in ("dsp.a", "dsp.b")])
            await live.die_reading(cast(int, argument))
        elif what == "die firing":
            await live.die_firing(now + AHEAD_S, cast(int, argument))
    return now


@settings(
    max_examples=12,
    phases=[Phase.generate],
)
@given(st.sampled_from(TEXTS), STEPS)
async def test_a_replay_equals_the_recording(
    settings: Settings,
    connection: Connection,
    live: RecordedInstance,
    text: str,
    steps: list[tuple[str, object]],
) -> None:
    """Each example has its own owner and its own thousand seconds. Each one replays all examples so far."""
    example = next(_examples)
    owner, began = f"plant-{example}", example * 1000.0
    await live.apply_only(text, began)
    now = await run_steps(live, steps, owner, began)
    await live.settle(now + 100)
    header, result = await replayed(settings, at(0), at(now + 100))
    assert header.is_whole
    assert header.horizon("data", 0) >= at(now + 50), "nothing is left undecided"
    assert not result.mismatches, "\n".join(map(str, result.mismatches))
    assert (len(result.recorded_transitions), result.staleness_count) == await count_records(connection)
    assert result.recorded_transitions == result.replayed_transitions


async def test_a_clock_ahead_of_the_workers_fires_nothing_for_what_they_have_not_read(
    settings: Settings, live: RecordedInstance
) -> None:
    """Without the datapoints that are not read yet, the alarm would open and the series would be stale."""
    await live.apply_only(TYPE.format("4s") + HOT + "  for: 5s\n" + QUIET, 0)
    await live.arrive([live.arrival(0, 71.0, "dsp.a", "plant-1")])
    live.publish([live.arrival(3, 50.0, "dsp.a", "plant-1"), live.arrival(12, 50.0, "dsp.a", "plant-1")])
    await live.run_clock(60)
    await live.settle(12)
    _, result = await replayed(settings, at(0), at(12))
    assert (result.recorded_transitions, result.staleness_count, result.mismatches) == ([], 0, [])
    assert result.datapoints == 3


async def test_a_window_that_begins_in_the_middle_restores_the_open_alarms(
    settings: Settings, live: RecordedInstance
) -> None:
    """Hours before, one alarm opened by a value and one by staleness. Both resolve in the window."""
    day = 86_400.0
    await live.apply_only(TYPE.format("4s") + HOT + QUIET, 0)
    await live.arrive([live.arrival(1, 71.0, "dsp.a", "plant-1"), live.arrival(1, 50.0, "dsp.b", "plant-2")])
    await live.settle(day)
    await live.set_time(day)
    await live.arrive([live.arrival(day + 60, 50.0, "dsp.a", "plant-1")])
    await live.arrive([live.arrival(day + 61, 50.0, "dsp.b", "plant-2")])
    await live.settle(day + 200)
    header, result = await replayed(settings, at(day), at(day + 200))
    assert not header.is_whole
    assert not result.mismatches, "\n".join(map(str, result.mismatches))
    ended = [transition.rule for transition in result.replayed_transitions if transition.kind == "resolved"]
    assert sorted(ended) == ["hot", "quiet", "quiet"]


async def test_a_rule_that_is_applied_twice_while_a_series_is_stale_opens_two_alarms(
    settings: Settings, live: RecordedInstance
) -> None:
    await live.apply_only(TYPE.format("4s"), 0)
    await live.arrive([live.arrival(1, 50.0, "dsp.a", "plant-1"), live.arrival(30, 50.0, "other", "plant-1")])
    for seconds in (40, 50):
        await live.apply_only(TYPE.format("4s") + QUIET, seconds)
        await live.apply_only(TYPE.format("4s"), seconds + 5)
    await live.settle(100)
    _, result = await replayed(settings, at(0), at(100))
    assert not result.mismatches, "\n".join(map(str, result.mismatches))
    opened = [
        transition.alarm_id for transition in result.replayed_transitions if transition.kind == "opened"
    ]
    assert len(opened) == len(set(opened)) == 2


async def test_a_death_before_any_statement_of_a_batch_or_a_fire_changes_nothing(
    settings: Settings, live: RecordedInstance
) -> None:
    """For each statement there is an owner whose batch, or fires, die there. All owners end alike."""
    await live.apply_only(TYPE.format("4s") + HOT + "  for: 3s\n" + QUIET + "  for: 1s\n" + STRICT, 0)
    owners: dict[str, list[str]] = {"reading": [], "firing": []}
    now = 0.0
    for what, of_kind in owners.items():
        is_dead = True
        while is_dead:
            owner = f"{what}-{len(of_kind)}"
            of_kind.append(owner)
            await live.arrive([live.arrival(now, 71.0, "dsp.a", owner)])
            now += 20
            if what == "reading":
                live.publish(
                    [live.arrival(now, 66.0, "dsp.a", owner), live.arrival(now + 8, 50.0, "dsp.a", owner)]
                )
                is_dead = await live.die_reading(len(of_kind) - 1)
            else:
                await live.read_until(at(now))
                is_dead = await live.die_firing(now, len(of_kind) - 1)
            now += 20
            await live.run_clock(now)
    await live.settle(now + 100)
    assert len(owners["reading"]) > 10, "it no longer reaches the statements of a batch"
    assert len(owners["firing"]) > 10, "it no longer reaches the statements of a fire"
    _, result = await replayed(settings, at(0), at(now + 100))
    assert not result.mismatches, "\n".join(map(str, result.mismatches))
    transitions = Counter(transition.owner for transition in result.recorded_transitions)
    for of_kind in owners.values():
        assert len({transitions[owner] for owner in of_kind}) == 1, transitions
        assert transitions[of_kind[0]] >= 3
