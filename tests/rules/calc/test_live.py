"""Windows of calc_rules are calculated once, from everything that arrived up to their end."""

from __future__ import annotations

import pytest

from rules.metrics import CALC_LATE
from tests.clock.clock_setup import at
from tests.rules.calc.calc_instance import CalcInstance
from tests.sessions import Sessions
from tests.sql import all_rows
from tocsin.core.db import Connection
from tocsin.core.settings import Settings

TOTAL = """---
calc_rule: {name: total, inputs: {load: {key: dsp.load, over: 20s}}, by: [], owner: all, every: 10s, value: load}
"""
PER_ZONE = """---
calc_rule:
  name: zone
  inputs:
    load: {key: 'dsp.*', where: 'owner != "x"', each: avg, over: 20s, aggregate: max}
  by: [zone]
  every: 10s
  value: 'load * 2.0'
"""
CHAIN = """---
calc_rule: {name: peak, inputs: {total: {key: calc.total, each: max, over: 40s}}, by: [], every: 20s, value: total}
"""
ABSENT = """---
calc_rule:
  name: gone
  inputs: {load: {key: dsp.load, over: 20s, aggregate: absent}}
  owners: [a, never]
  every: 10s
  value: load
"""


def _late_count() -> float:
    return sum(count for _, labels, count in CALC_LATE.samples() if ("rule", "total") in labels)


@pytest.fixture
async def live(settings: Settings, sessions: Sessions) -> CalcInstance:
    instance = CalcInstance(settings, sessions)
    await instance.begin()
    return instance


async def test_a_window_has_everything_that_arrived_up_to_its_end(live: CalcInstance) -> None:
    await live.apply_only(TOTAL, 1)
    live.publish([live.point(4, 1.5, "dsp.load", "a"), live.point(10, 2, "dsp.load", "b")])
    live.publish([live.point(10.000001, 40, "dsp.load", "b")])
    await live.read_until(at(25))
    assert await live.calculate() == 2
    assert await live.results() == [(10, "all", "calc.total", 3.5), (20, "all", "calc.total", 41.5)]
    assert await live.calculate() == 0


async def test_a_window_waits_until_the_watermark_has_passed_its_end(live: CalcInstance) -> None:
    await live.apply_only(TOTAL, 1)
    await live.arrive([live.point(10, 1, "dsp.load")])
    assert await live.calculate() == 0, "more may arrive at the same instant"
    await live.arrive([live.point(10, 2, "dsp.load", "b"), live.point(11, 5, "dsp.load")])
    assert await live.calculate() == 1
    assert await live.results() == [(10, "all", "calc.total", 3.0)]


async def test_groups_have_series_keys_with_their_labels(live: CalcInstance) -> None:
    await live.apply_only(PER_ZONE, 1)
    live.publish([live.point(2, 1, "dsp.a", "o", zone="n"), live.point(3, 3, "dsp.a", "o", zone="n")])
    live.publish([live.point(4, 5, "dsp.b", "o", zone="s"), live.point(5, 99, "dsp.b", "x", zone="s")])
    await live.read_until(at(11))
    await live.calculate()
    assert await live.results() == [
        (10, "zone", 'calc.zone{zone="n"}', 4.0),
        (10, "zone", 'calc.zone{zone="s"}', 10.0),
    ]


async def test_a_result_arrives_like_a_datapoint_and_opens_an_alarm(
    live: CalcInstance, connection: Connection
) -> None:
    await live.apply_only(TOTAL + "---\nevent_rule: {name: much, datapoint: calc.total, above: 3}\n", 1)
    live.publish([live.point(4, 2, "dsp.load", "a"), live.point(5, 2, "dsp.load", "b")])
    await live.read_until(at(11))
    await live.calculate()
    await live.read_calculated(12)
    (value,) = await all_rows(connection, "select * from tocsin.current_value where key = 'calc.total'")
    assert (value["owner"], value["value"], value["ts"]) == ("all", 4.0, at(10))
    (alarm,) = await all_rows(connection, "select * from tocsin.alarm where event_rule = 'much'")
    assert (alarm["owner"], alarm["state"], alarm["since"]) == ("all", "open", at(12))


async def test_a_rule_reads_the_results_of_another_without_a_delay(live: CalcInstance) -> None:
    await live.apply_only(TOTAL + CHAIN, 1)
    for seconds, value in ((5, 1), (15, 7), (35, 2), (55, 3)):
        live.publish([live.point(seconds, value, "dsp.load")])
    await live.read_until(at(81))
    await live.calculate()
    results = await live.results()
    total = [value for _, _, key, value in results if key == "calc.total"]
    peak = {seconds: value for seconds, _, key, value in results if key == "calc.peak"}
    assert total == [1.0, 7.0, 7.0, 2.0, 2.0, 3.0, 3.0]
    assert peak == {20: 7.0, 40: 7.0, 60: 7.0, 80: 3.0}


async def test_a_late_datapoint_changes_no_window_and_is_counted(live: CalcInstance) -> None:
    await live.apply_only(TOTAL, 1)
    live.publish([live.point(4, 1, "dsp.load"), live.point(6, 50, "dsp.load", age=21)])
    live.publish([live.point(7, 2, "dsp.load", age=20)])
    await live.read_until(at(11))
    before = _late_count()
    await live.calculate()
    assert await live.results() == [(10, "all", "calc.total", 1.0)], "the newest ts counts"
    assert _late_count() - before == 1


async def test_a_series_that_never_spoke_is_absent_unless_nothing_could_arrive(live: CalcInstance) -> None:
    await live.apply_only(ABSENT, 1)
    await live.read_until(at(2))
    live.publish([live.point(5, 1, "dsp.load")])
    await live.read_until(at(11))
    live.end_gap(45)
    await live.read()
    await live.read_until(at(71))
    await live.calculate()
    results = [(seconds, owner, value) for seconds, owner, _, value in await live.results()]
    assert results == [
        *((10, "a", 0.0), (10, "never", 1.0)),
        # In 11s to 45s nothing could arrive, so absence is concluded when a whole range lies behind it.
        (20, "a", 0.0),
        *((70, "a", 1.0), (70, "never", 1.0)),
    ]


async def test_an_apply_changes_the_windows_that_end_after_it(live: CalcInstance) -> None:
    await live.apply_only(TOTAL, 1)
    live.publish([live.point(seconds, seconds, "dsp.load") for seconds in (5, 15)])
    await live.read_until(at(22))
    # Windows that end before the apply are calculated after it, and still with the older rule.
    await live.apply_only(TOTAL.replace("value: load", "value: 'load * 10.0'"), 23)
    live.publish([live.point(seconds, seconds, "dsp.load") for seconds in (25, 35)])
    await live.read_until(at(41))
    await live.calculate()
    assert [(seconds, value) for seconds, _, _, value in await live.results()] == [
        *((10, 5.0), (20, 15.0)),
        *((30, 250.0), (40, 350.0)),
    ]


@pytest.mark.parametrize("statements", range(0, 34))
async def test_a_worker_that_dies_at_any_statement_loses_and_doubles_no_window(
    live: CalcInstance, statements: int
) -> None:
    await live.apply_only(TOTAL + CHAIN, 1)
    for seconds in range(2, 60, 3):
        live.publish([live.point(seconds, seconds, "dsp.load")])
    await live.read_until(at(61))
    await live.die_calculating(statements)
    await live.calculate_at_once()
    await live.calculate()
    results = await live.results()
    assert [seconds for seconds, _, key, _ in results if key == "calc.total"] == [10, 20, 30, 40, 50, 60]
    assert [seconds for seconds, _, key, _ in results if key == "calc.peak"] == [20, 40, 60]
