"""I5 for calculated series: a replay gives the recorded results and the alarms over them."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from rules.calc import functions
from rules.documents.load import load_text
from rules.replay.backtest.parallel import backtest
from rules.replay.backtest.recording.database import open_database_recording
from tests.clock.clock_setup import at
from tests.rules.calc.calc_instance import CalcInstance
from tests.rules.replay.backtest.recorded_instance import replayed
from tests.rules.replay.backtest.simulated_recording import versions
from tests.sessions import Sessions
from tocsin.core.settings import Settings

RULES = (
    """---
calc_rule: {name: total, inputs: {load: {key: dsp.load, over: 20s}}, by: [], owner: all, every: 10s, value: load}
---
calc_rule: {name: peak, inputs: {total: {key: calc.total, each: max, over: 40s}}, by: [], every: 20s, value: total}
---
event_rule: {name: much, datapoint: calc.total, above: 60, for: 10s}
""",
    """---
calc_rule:
  name: total
  inputs:
    load: {key: 'dsp.*', each: avg, over: 30s, offset: 5s, late_after: 4s, aggregate: quantile(0.5)}
    gone: {key: dsp.load, over: 20s, aggregate: absent}
  by: [owner]
  owners: [a, never]
  every: 10s
  value: 'load * 2.0 + gone'
---
calc_rule: {name: growth, inputs: {load: {key: dsp.load, each: rate, over: 1m}}, by: [zone], every: 15s, value: load}
---
event_rule: {name: much, datapoint: calc.total, above: 100}
""",
)
DATAPOINT = st.tuples(
    st.sampled_from([0, 1, 3, 7, 14]),
    st.sampled_from([1.0, 0.1, 50.0, 71.3]),
    st.sampled_from(["dsp.load", "dsp.other"]),
    st.sampled_from("ab"),
    st.sampled_from([0, 3, 5, 25]),
)
STEP = st.one_of(
    *[st.tuples(st.just("send"), st.lists(DATAPOINT, min_size=1, max_size=5))] * 3,
    st.tuples(st.just("wait"), st.integers(1, 30)),
    st.tuples(st.just("gap"), st.integers(5, 40)),
    st.tuples(st.just("apply"), st.integers(0, 1)),
    st.tuples(st.just("calculate"), st.sampled_from([None, 3, 7, 12])),
    st.tuples(st.just("deliver"), st.none()),
)
_examples = itertools.count()


@pytest.fixture
async def live(settings: Settings, sessions: Sessions) -> CalcInstance:
    instance = CalcInstance(settings, sessions)
    await instance.begin()
    return instance


class Driver:
    def __init__(self, live: CalcInstance, now: float) -> None:
        self.live, self.now = live, now

    async def step(self, what: str, argument: Any) -> None:
        if what == "send":
            for gap, value, key, owner, age in argument:
                self.now += gap
                self.live.publish([self.live.point(self.now, value, key, owner, age, zone=owner + "z")])
            await self.live.read()
        elif what == "wait":
            self.now += argument
            await self.live.read_until(at(self.now))
        elif what == "gap":
            self.now += argument
            self.live.end_gap(self.now)
            await self.live.read()
        elif what == "apply":
            await self.live.apply_only(RULES[argument], self.now)
        elif what == "calculate" and argument is not None:
            await self.live.die_calculating(argument)
        elif what == "calculate":
            await self.live.calculate_at_once()
        else:
            await self.live.read_calculated(self.now)


@settings(max_examples=12, phases=[Phase.generate], deadline=None)
@given(st.lists(STEP, min_size=4, max_size=14))
async def test_a_replay_gives_the_results_that_workers_recorded_while_they_were_killed(
    settings: Settings, live: CalcInstance, steps: list[tuple[str, Any]]
) -> None:
    driver = Driver(live, 2_000 * next(_examples) + 10)
    await live.read_until(at(driver.now))
    await live.apply_only(RULES[0], driver.now)
    for what, argument in steps:
        await driver.step(what, argument)
    await driver.step("wait", 90)
    await live.calculate()
    await driver.step("deliver", None)
    await driver.step("wait", 30)
    await live.calculate()
    await driver.step("deliver", None)
    recorded = await live.results()
    assert len(recorded) == len({result[:3] for result in recorded}), "each result once"
    header, result = await replayed(settings, at(0), at(driver.now))
    assert header.horizon("calc", 0) >= at(driver.now - 20), "everything is calculated"
    assert not result.mismatches, "\n".join(map(str, result.mismatches))
    assert result.calculated_count == len(recorded)
    assert result.recorded_transitions == result.replayed_transitions


async def _record(live: CalcInstance) -> None:
    await live.apply_only(RULES[0], 1)
    for seconds in range(2, 100, 4):
        live.publish([live.point(seconds, 40 + seconds, "dsp.load", "ab"[seconds // 4 % 2])])
    await live.read_until(at(101))
    await live.calculate()
    await live.read_calculated(102)
    await live.settle(130)


async def test_a_rule_reads_the_results_from_before_it_was_applied(
    settings: Settings, live: CalcInstance
) -> None:
    await live.apply_only(RULES[1], 1)
    live.publish([live.point(seconds, 70, "dsp.load", age=0) for seconds in range(2, 30, 4)])
    await live.read_until(at(31))
    await live.apply_only(RULES[0], 31)
    live.publish([live.point(seconds, 5, "dsp.load", age=0) for seconds in range(32, 60, 4)])
    await live.read_until(at(61))
    await live.calculate()
    peaks = {seconds: value for seconds, _, key, value in await live.results() if key == "calc.peak"}
    assert peaks[40] == 140.0 + 5.0, "of owner a by the documents before, and of the owner all"
    _, result = await replayed(settings, at(0), at(60))
    assert not result.mismatches, "\n".join(map(str, result.mismatches))


async def test_a_function_that_gives_another_value_is_a_mismatch(
    settings: Settings, live: CalcInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _record(live)
    monkeypatch.setitem(functions._OF_GROUP, "sum", lambda values, fraction: sum(values) + 1)
    _, result = await replayed(settings, at(0), at(100))
    assert {one.what for one in result.mismatches} >= {"calc.total", "calc.peak"}


@pytest.mark.parametrize("jobs", [1, 2])
async def test_candidate_calc_rules_replace_the_recorded_results(
    settings: Settings, live: CalcInstance, jobs: int
) -> None:
    await _record(live)
    text = RULES[0].replace("owner: all", "owner: others").replace("value: load", "value: 'load * 2.0'")
    candidate = load_text(text.replace("above: 60", "above: 200"))
    async with open_database_recording(settings, at(0), at(130)) as source:
        header = await source.header()
        result = await backtest(source, header, versions(candidate), jobs=jobs)
    assert {(one.rule, one.owner) for one in result.recorded_transitions} == {("much", "all")}
    assert {(one.rule, one.owner) for one in result.replayed_transitions} == {("much", "others")}
