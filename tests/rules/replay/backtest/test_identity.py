"""I5: a recording, replayed with the rules of the time, is the recording, whatever was slow, killed or applied."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import cast

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.clock.clock_setup import at
from tests.rules.replay.backtest.recorded_instance import Living, counted, replayed
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
        st.tuples(st.sampled_from(["clock", "hear", "wait", "freeze"]), st.just(None)),
        st.tuples(st.just("die reading"), st.integers(0, 24)),
        st.tuples(st.just("die firing"), st.integers(0, 24)),
    ),
    min_size=3,
    max_size=10,
)
# The clock is ahead of what has been read, and must not speak of it.
AHEAD_S = 12
_examples = itertools.count(1)


@pytest.fixture
async def live(settings: Settings, sessions: Sessions) -> Living:
    found = Living(settings, sessions)
    await found.begin()
    return found


async def live_through(live: Living, steps: list[tuple[str, object]], owner: str, began: float) -> float:
    now = began
    for what, told in steps:
        if what in ("send", "fall behind"):
            batch = []
            for gap, value, key, north in told:  # type: ignore[attr-defined]
                now += gap
                labels = {"zone": "north"} if north else {}
                batch.append(live.arrival(now, value, key, owner, **labels))
            live.publish(batch)
            await (live.read() if what == "send" else live.run_clock(now + AHEAD_S))
        elif what == "apply":
            now += 1
            await live.read_until(at(now))
            await live.only(str(told), now + 0.5)
        elif what == "apply unread":
            now += 1
            await live.only(str(told), now + 0.5)
        elif what == "clock":
            await live.run_clock(now + AHEAD_S)
        elif what == "hear":
            await live.hear(now)
        elif what == "wait":
            now += 7
            await live.read_until(at(now))
        elif what == "freeze":
            live.publish([live.arrival(now, 66.0, "dsp.b", owner)])
            await live.freeze_reading()
        elif what == "die reading":
            now += 5
            live.publish([live.arrival(now, 71.0, key, owner) for key in ("dsp.a", "dsp.b")])
            await live.die_reading(cast(int, told))
        elif what == "die firing":
            await live.die_firing(now + AHEAD_S, cast(int, told))
    return now


@settings(
    max_examples=12,
    phases=[Phase.generate],
)
@given(st.sampled_from(TEXTS), STEPS)
async def test_a_replay_of_what_was_lived_through_is_what_was_recorded(
    settings: Settings, connection: Connection, live: Living, text: str, steps: list[tuple[str, object]]
) -> None:
    """Each example has an owner and a thousand seconds of its own; all are replayed together, again and again."""
    example = next(_examples)
    owner, began = f"plant-{example}", example * 1000.0
    await live.only(text, began)
    now = await live_through(live, steps, owner, began)
    await live.come_to_rest(now + 100)
    header, found = await replayed(settings, at(0), at(now + 100))
    assert header.is_whole
    assert header.horizon("data", 0) >= at(now + 50), "nothing is left undecided"
    assert not found.mismatches, "\n".join(map(str, found.mismatches))
    assert (len(found.recorded_transitions), found.staleness_count) == await counted(connection)
    assert found.recorded_transitions == found.replayed_transitions


async def test_a_clock_ahead_of_the_workers_says_nothing_of_what_they_have_not_read(
    settings: Settings, live: Living
) -> None:
    """Ten seconds later the alarm would be due, and the series stale; but it spoke meanwhile, and was well."""
    await live.only(TYPE.format("4s") + HOT + "  for: 5s\n" + QUIET, 0)
    await live.arrive([live.arrival(0, 71.0, "dsp.a", "plant-1")])
    live.publish([live.arrival(3, 50.0, "dsp.a", "plant-1"), live.arrival(12, 50.0, "dsp.a", "plant-1")])
    await live.run_clock(60)
    await live.come_to_rest(12)
    _, found = await replayed(settings, at(0), at(12))
    assert (found.recorded_transitions, found.staleness_count, found.mismatches) == ([], 0, [])
    assert found.datapoints == 3


async def test_a_window_that_begins_in_the_middle_takes_what_was_open_as_a_fact(
    settings: Settings, live: Living
) -> None:
    """Hours before, one alarm opened by a value and one by silence; both end inside the window."""
    day = 86_400.0
    await live.only(TYPE.format("4s") + HOT + QUIET, 0)
    await live.arrive([live.arrival(1, 71.0, "dsp.a", "plant-1"), live.arrival(1, 50.0, "dsp.b", "plant-2")])
    await live.come_to_rest(day)
    await live.be_at(day)
    await live.arrive([live.arrival(day + 60, 50.0, "dsp.a", "plant-1")])
    await live.arrive([live.arrival(day + 61, 50.0, "dsp.b", "plant-2")])
    await live.come_to_rest(day + 200)
    header, found = await replayed(settings, at(day), at(day + 200))
    assert not header.is_whole
    assert not found.mismatches, "\n".join(map(str, found.mismatches))
    ended = [transition.rule for transition in found.replayed_transitions if transition.kind == "resolved"]
    assert sorted(ended) == ["hot", "quiet", "quiet"]


async def test_a_rule_that_came_back_over_one_silence_is_replayed_as_often(
    settings: Settings, live: Living
) -> None:
    await live.only(TYPE.format("4s"), 0)
    await live.arrive([live.arrival(1, 50.0, "dsp.a", "plant-1"), live.arrival(30, 50.0, "other", "plant-1")])
    for seconds in (40, 50):
        await live.only(TYPE.format("4s") + QUIET, seconds)
        await live.only(TYPE.format("4s"), seconds + 5)
    await live.come_to_rest(100)
    _, found = await replayed(settings, at(0), at(100))
    assert not found.mismatches, "\n".join(map(str, found.mismatches))
    opened = [transition.alarm_id for transition in found.replayed_transitions if transition.kind == "opened"]
    assert len(opened) == len(set(opened)) == 2


async def test_a_death_before_any_statement_of_a_batch_or_a_fire_changes_nothing(
    settings: Settings, live: Living
) -> None:
    """Each statement has an owner whose batch, or fires, die there: all of them end alike, and as the replay says."""
    await live.only(TYPE.format("4s") + HOT + "  for: 3s\n" + QUIET + "  for: 1s\n" + STRICT, 0)
    owners: dict[str, list[str]] = {"reading": [], "firing": []}
    now = 0.0
    for what, at_owners in owners.items():
        is_dead = True
        while is_dead:
            owner = f"{what}-{len(at_owners)}"
            at_owners.append(owner)
            await live.arrive([live.arrival(now, 71.0, "dsp.a", owner)])
            now += 20
            if what == "reading":
                live.publish(
                    [live.arrival(now, 66.0, "dsp.a", owner), live.arrival(now + 8, 50.0, "dsp.a", owner)]
                )
                is_dead = await live.die_reading(len(at_owners) - 1)
            else:
                await live.read_until(at(now))
                is_dead = await live.die_firing(now, len(at_owners) - 1)
            now += 20
            await live.run_clock(now)
    await live.come_to_rest(now + 100)
    assert len(owners["reading"]) > 10, "it no longer reaches the statements of a batch"
    assert len(owners["firing"]) > 10, "it no longer reaches the statements of a fire"
    _, found = await replayed(settings, at(0), at(now + 100))
    assert not found.mismatches, "\n".join(map(str, found.mismatches))
    transitions = Counter(transition.owner for transition in found.recorded_transitions)
    for at_owners in owners.values():
        assert len({transitions[owner] for owner in at_owners}) == 1, transitions
        assert transitions[at_owners[0]] >= 3
