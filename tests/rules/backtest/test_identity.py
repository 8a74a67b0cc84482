"""I5: a recording, replayed with the rules of the time, is the recording, whatever was slow, killed or applied."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.clock.beats import at
from tests.rules.backtest.living import Living, counted, replayed
from tests.sessions import Sessions
from tocsin.core.db import Connection
from tocsin.core.settings import Settings

TYPE = "---\ndatapoint_type:\n  name: load\n  key: dsp.*\n  interval: {}\n"
HOT = "---\nevent_rule:\n  name: hot\n  datapoint: dsp.*\n  fire: value > 65.0\n  clear: value < 60.0\n"
QUIET = "---\nevent_rule:\n  name: quiet\n  datapoint: dsp.*\n  absent: true\n"
STEEP = "---\nevent_rule:\n  name: steep\n  datapoint: dsp.a\n  fire: rate > 2.0 || value > 70.0\n"
MEAN = "---\nevent_rule:\n  name: mean\n  datapoint: dsp.*\n  above: 63\n  window: {over: 20s, reduce: avg}\n"
STRICT = "---\nevent_rule:\n  name: strict\n  datapoint: dsp.*\n  below: 60\n  no_data: alarm\n"
TEXTS = [
    TYPE.format("4s") + HOT + QUIET + "  for: 5s\n",
    TYPE.format("8s") + HOT + "  for: 6s\n  for_clear: 3s\n" + QUIET + STEEP,
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
        st.tuples(st.just("apply"), st.sampled_from(TEXTS)),
        st.tuples(st.sampled_from(["clock", "hear", "wait", "crash"]), st.just(None)),
    ),
    min_size=3,
    max_size=10,
)
_examples = itertools.count(1)


@pytest.fixture
async def live(connection: Connection, sessions: Sessions) -> Living:
    found = Living(connection, await sessions("clock"))
    await found.begin()
    return found


async def live_through(live: Living, steps: list[tuple[str, object]], owner: str, began: float) -> float:
    now = began
    for what, told in steps:
        if what == "send":
            batch = []
            for gap, value, key, north in told:  # type: ignore[attr-defined]
                now += gap
                labels = {"zone": "north"} if north else {}
                batch.append(live.arrival(now, value, key, owner, **labels))
            await live.arrive(batch)
        elif what == "apply":
            now += 1
            await live.read_until(at(now))
            await live.only(str(told), now + 0.5)
        elif what == "clock":
            await live.run_clock(now)
        elif what == "hear":
            await live.hear(now, owner)
        elif what == "wait":
            now += 7
            await live.read_until(at(now))
        elif what == "crash":
            await live.crash(now)
    return now


@settings(
    max_examples=12,
    phases=[Phase.generate],
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
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
    await live.come_to_rest(now + 100, [f"plant-{number}" for number in range(1, example + 1)])
    story, found = await replayed(settings, at(0), at(now + 100))
    assert story.is_whole
    assert story.horizon("data", 0) >= at(now + 50), "nothing is left undecided"
    assert not found.differences, "\n".join(map(str, found.differences))
    assert (len(found.then), found.staleness) == await counted(connection)
    assert found.then == found.now


async def test_a_window_that_begins_in_the_middle_takes_what_was_open_as_a_fact(
    settings: Settings, live: Living
) -> None:
    """Hours before, one alarm opened by a value and one by silence; both end inside the window."""
    day = 86_400.0
    await live.only(TYPE.format("4s") + HOT + QUIET, 0)
    await live.arrive([live.arrival(1, 71.0, "dsp.a", "plant-1"), live.arrival(1, 50.0, "dsp.b", "plant-2")])
    await live.come_to_rest(day, ["plant-1", "plant-2"])
    await live.be_at(day)
    await live.arrive([live.arrival(day + 60, 50.0, "dsp.a", "plant-1")])
    await live.arrive([live.arrival(day + 61, 50.0, "dsp.b", "plant-2")])
    await live.come_to_rest(day + 200, ["plant-1", "plant-2"])
    story, found = await replayed(settings, at(day), at(day + 200))
    assert not story.is_whole
    assert not found.differences, "\n".join(map(str, found.differences))
    ended = [edge.rule for edge in found.now if edge.edge == "resolved"]
    assert sorted(ended) == ["hot", "quiet", "quiet"]
