"""I5: a replay with the rules of the time equals the recording, whatever was slow, killed or applied."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import cast

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from rules.replay.backtest.candidates import candidate_documents
from rules.replay.backtest.parallel import backtest
from rules.replay.backtest.recording.database import open_database_recording
from tests.clock.clock_setup import at
from tests.rules.replay.backtest.recorded_instance import RecordedInstance, count_records, replayed
from tests.rules.replay.backtest.series_rules import HOT, QUIET, TYPE
from tests.sessions import Sessions
from tocsin.core.db import Connection
from tocsin.core.settings import Settings

STEEP = "---\nevent_rule:\n  name: steep\n  datapoint: dsp.a\n  fire: rate > 2.0 || value > 70.0\n"
MEAN = "---\nevent_rule:\n  name: mean\n  datapoint: dsp.*\n  above: 63\n  window: {over: 20s, reduce: avg}\n"
STRICT = "---\nevent_rule:\n  name: strict\n  datapoint: dsp.*\n  below: 60\n  no_data: alarm\n"
COUNT = (
    MEAN.replace("mean", "few").replace("above: 63", "below: 2").replace("avg", "count") + "  per: owner\n"
)
GRADED = (
    "---\nevent_rule:\n  name: graded\n  datapoint: dsp.*\n  above: {warning: 55, high: 65, critical: 70}\n"
)
TEXTS = [
    TYPE.format("4s") + GRADED + "  per: owner\n  keep_firing_for: 6s\n" + QUIET,
    TYPE.format("8s") + GRADED + "  clear: value < 52.0\n  for: 4s\n  no_data: alarm\n",
    GRADED + "  window: {over: 20s, reduce: max}\n  keep_firing_for: 3s\n",
    TYPE.format("4s") + HOT + QUIET + "  for: 5s\n",
    TYPE.format("8s") + HOT + "  for: 6s\n  keep_firing_for: 3s\n" + QUIET + STEEP,
    TYPE.format("2s") + HOT + "  cooldown: 20s\n" + STRICT + "  no_data_for: 2s\n" + MEAN,
    TYPE.format("4s") + "  on_stale: alarm\n" + STEEP + "  for: 2s\n" + HOT + "  enabled: false\n",
    STEEP + MEAN,
    TYPE.format("4s") + HOT + "  per: owner\n  for: 6s\n  keep_firing_for: 3s\n" + MEAN + "  for: 5s\n",
    TYPE.format("4s") + STRICT + "  per: owner\n" + COUNT,
    TYPE.format("4s").replace("dsp.*", "dsp.a") + STRICT + HOT + "  where: labels.zone == 'north'\n",
]
KEYS = st.sampled_from(["dsp.a", "dsp.b"])
Datapoint = tuple[int, float, str, bool]
DATAPOINT = st.tuples(st.integers(0, 12), st.sampled_from([50.0, 62.5, 66.0, 71.0]), KEYS, st.booleans())
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.lists(DATAPOINT, min_size=1, max_size=4)),
        st.tuples(st.just("send"), st.lists(DATAPOINT, min_size=1, max_size=4)),
        st.tuples(st.just("fall behind"), st.lists(DATAPOINT, min_size=1, max_size=4)),
        st.tuples(st.sampled_from(["apply", "apply unread"]), st.sampled_from(TEXTS)),
        st.tuples(st.sampled_from(["clock", "read calculated", "wait", "freeze", "resolve"]), st.just(None)),
        st.tuples(st.sampled_from(["outage", "unread outage"]), st.integers(3, 40)),
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


def publish(live: RecordedInstance, datapoints: list[Datapoint], owner: str, now: float) -> float:
    """Publish datapoints, each some seconds after the one before; return when the last one arrives."""
    for seconds, value, key, is_north in datapoints:
        now += seconds
        labels = {"zone": "north"} if is_north else {}
        live.publish([live.arrival(now, value, key, owner, **labels)])
    return now


async def run_steps(
    live: RecordedInstance, steps: list[tuple[str, object]], owner: str, began: float
) -> float:
    now = began
    for what, argument in steps:
        if what in ("send", "fall behind"):
            now = publish(live, cast(list[Datapoint], argument), owner, now)
            await (live.read() if what == "send" else live.run_clock(now + AHEAD_S))
        elif what in ("apply", "apply unread"):
            now += 1
            if what == "apply":
                await live.read_until(at(now))
            await live.apply_only(str(argument), now + 0.5)
        elif what in ("clock", "resolve"):
            await (live.run_clock(now + AHEAD_S) if what == "clock" else live.resolve_alarms(owner, now))
        elif what == "read calculated":
            await live.read_calculated(now)
        elif what == "wait":
            now += 7
            await live.read_until(at(now))
        elif what in ("outage", "unread outage"):
            now += cast(int, argument)
            live.end_gap(now)
            await (live.read() if what == "outage" else live.run_clock(now + AHEAD_S))
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


@pytest.mark.parametrize("by", ["clock", "worker", "apply"])
async def test_a_replay_has_the_gaps_that_extended_the_deadlines(
    settings: Settings, live: RecordedInstance, by: str, tmp_path: Path
) -> None:
    """Whether the clock, a worker or an apply finds the series stale; and for candidate rules."""
    await live.apply_only(TYPE.format("4s"), 0)
    await live.arrive([live.arrival(1, 50.0, "dsp.a", "plant-1"), live.arrival(2, 50.0, "dsp.b", "plant-1")])
    live.end_gap(30)
    live.publish([live.arrival(32, 50.0, "dsp.b", "plant-1"), live.arrival(34, 50.0, "dsp.b", "plant-1")])
    live.end_gap(37)
    await live.read()
    if by == "worker":
        await live.arrive([live.arrival(60, 50.0, "dsp.c", "plant-1")])
    elif by == "apply":
        await live.read_until(at(60))
        await live.apply_only(TYPE.format("4s") + QUIET, 60)
    await live.settle(100)
    async with open_database_recording(settings, at(0), at(100)) as source:
        header = await source.header()
        assert [[gap.ended_at for gap in gaps] for gaps in header.gaps.values()] == [[at(30), at(37)]]
        result = await backtest(source, header)
        assert not result.mismatches, "\n".join(map(str, result.mismatches))
        (a, b) = [change for change in result.replayed_staleness if change.key in ("dsp.a", "dsp.b")]
        assert (a.key, a.at) == ("dsp.a", at(30 + 10 + 3)), "the first gap whole, the second by its length"
        assert (b.key, b.at) == ("dsp.b", at(37 + 10)), "for this arrival it is the first"
        rules = tmp_path / "candidate.yaml"
        rules.write_text(TYPE.format("6s"))
        candidate = await backtest(source, header, candidate_documents(header, [rules], at(100)))
        stale = {change.key: change.at for change in candidate.replayed_staleness}
        assert (stale["dsp.a"], stale["dsp.b"]) == (at(30 + 15 + 3), at(37 + 15))


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
