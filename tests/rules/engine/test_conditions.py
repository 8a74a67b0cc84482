"""What conditions may look at, and what they say when it is not there."""

from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from rules.engine import BLANK, Arrival, Open, RuleState, step
from tests.rules.engine.scenario import KEY, PLANT, T0, Scenario, rule, watched

NUMBER = "datapoint_type: {name: t, key: '**', value: number, unit: bar}\n"


def test_previous_and_rate_say_nothing_at_the_first_arrival_and_that_is_no_error() -> None:
    for condition in ("previous < value", "rate >= 0.0", "!(rate > 100.0)"):
        with capture_logs() as logs:
            scenario = Scenario(NUMBER + rule(f"fire: '{condition}'")).send(50)
            assert (scenario.log, logs) == ([], [])
            assert scenario.at("1s").send(60).log == ["1s opened dsp-hot"]


def test_a_condition_without_the_previous_value_is_evaluated_at_the_first_arrival() -> None:
    assert Scenario(NUMBER + rule("fire: 'value > 65.0 || rate > 1.0'")).send(70).log == ["0s opened dsp-hot"]


def test_rate_is_the_change_per_second_between_arrivals() -> None:
    scenario = Scenario(NUMBER + rule("rate_increase: 0.5"))
    scenario.send(0).at("10s").send(5).at("20s").send(10.1).at("30s").send(10.1)
    assert scenario.log == ["20s opened dsp-hot", "30s resolved dsp-hot"]


def test_two_values_of_one_instant_have_no_rate() -> None:
    with capture_logs() as logs:
        assert Scenario(NUMBER + rule("rate_increase: 0.5")).send(0).send(100).log == []
    assert logs == []


def test_each_series_has_its_own_previous_value() -> None:
    scenario = Scenario(NUMBER + rule("fire: previous > value", datapoint="a.*"))
    scenario.send(9, "a.b").send(1, "a.c").send(9, "a.b")
    assert scenario.log == []
    assert scenario.send(8, "a.b").log == ["0s opened dsp-hot"]


@pytest.mark.parametrize(
    ("condition", "is_true"),
    [
        (f'owner == "{PLANT}" && key == "{KEY}" && unit == "bar"', True),
        ("arrived_at - ts == duration('1h') && ts.getHours() == 9", True),
        ("high > warning && disaster == 6", True),
        ('labels.zone == "north"', True),
        ('has(labels.nothing) || labels.zone == "south"', False),
    ],
)
def test_a_condition_may_read(condition: str, is_true: bool) -> None:
    scenario = Scenario(NUMBER + rule(f"fire: >-\n    {condition}")).send(1, zone="north")
    assert bool(scenario.log) is is_true


def test_a_condition_that_fails_is_neither_fire_nor_clear() -> None:
    scenario = Scenario(rule("""fire: 'labels.limit != "" && value > double(labels.limit)'"""))
    with capture_logs() as logs:
        scenario.send(70).send(70, limit="65").at("1m").send(50).at("2m").send(50, limit="x")
        assert scenario.log == ["0s opened dsp-hot"]
        assert scenario.at("3m").send(50, limit="65").log[1:] == ["3m resolved dsp-hot"]
    assert len(logs) == 1


def test_a_clear_that_fails_leaves_a_clearing_alarm_clearing() -> None:
    scenario = Scenario(
        rule("above: 65", "keep_firing_for: 5m", """clear: 'labels.zone == "a" && value < 60.0'""")
    )
    scenario.send(70, zone="a").at("1m").send(50, zone="a").at("2m").send(50).at("1h")
    assert scenario.log == ["0s opened dsp-hot", "6m resolved dsp-hot"]


def test_a_window_that_has_nothing_to_say_yet_is_no_error() -> None:
    with capture_logs() as logs:
        assert Scenario(rule("above: 0", "window: {over: 10m, reduce: rate}")).send(1).log == []
    assert logs == []


def test_a_window_without_a_result_is_no_error_although_there_is_a_previous_value() -> None:
    conditions = rule("fire: 'value > 0.0 && previous > 0.0'", "window: {over: 10m, reduce: rate}")
    with capture_logs() as logs:
        assert Scenario(NUMBER + conditions).send(1).at("1h").send(2).log == []
    assert logs == []


def test_the_count_of_a_window_is_a_number_for_values_of_any_kind() -> None:
    type_ = "datapoint_type: {name: t, key: '**', value: string}\n"
    scenario = Scenario(type_ + rule("above: 1", "window: {over: 10m, reduce: count}")).send("a").send("b")
    assert scenario.log == ["0s opened dsp-hot"]


def test_a_value_of_another_type_than_expected_is_no_match() -> None:
    with capture_logs() as logs:
        assert Scenario(rule("above: 65")).send("hot").send(True).log == []
    assert [entry["hint"] for entry in logs] == [
        "declare a datapoint_type, so that types are checked when the rule is loaded"
    ]


@pytest.mark.parametrize(
    ("kind", "condition", "value"),
    [("number", "value == 2.0", 2), ("string", 'value == "off"', "off"), ("bool", "!value", False)],
)
def test_a_value_has_the_type_that_its_datapoint_type_declares(kind: str, condition: str, value: Any) -> None:
    type_ = f"datapoint_type: {{name: t, key: '**', value: {kind}}}\n"
    assert Scenario(type_ + rule(f"fire: '{condition}'")).send(value).log == ["0s opened dsp-hot"]


@pytest.mark.parametrize(
    ("reduce", "above", "opens_at"),
    [
        ("avg", 4.9, "5m"),  # 0, 0, 0, 10, 10, 10
        ("min", 0.5, "12m"),  # the last 0 leaves the window
        ("max", 9, "3m"),
        ("sum", 25, "5m"),  # 0, 10, 10, 10
        ("count", 5, "5m"),
        ("rate", 0.05, "3m"),  # from 0 to 10 in three minutes
    ],
)
def test_a_window_reduces_what_arrived_within_it(reduce: str, above: float, opens_at: str) -> None:
    window = f"window: {{over: 10m, reduce: {reduce}}}"
    scenario = Scenario(rule(f"above: {above}", window))
    for minute in range(15):
        scenario.at(f"{minute}m").send(0 if minute < 3 else 10)
    assert scenario.log[:1] == [f"{opens_at} opened dsp-hot"]


def test_a_window_is_evaluated_when_values_leave_it() -> None:
    scenario = Scenario(rule("above: 5", "window: {over: 10m, reduce: avg}"))
    scenario.send(20).at("5m").send(0).at("20m")
    assert scenario.log == ["0s opened dsp-hot", "10m resolved dsp-hot"]


def test_a_count_falls_although_nothing_arrives() -> None:
    scenario = Scenario(rule("above: 5", "window: {over: 10m, reduce: count}"))
    for second in range(10):
        scenario.at(f"{second}m").send(1)
    assert scenario.at("24h").log == ["5m opened dsp-hot", "14m resolved dsp-hot"]


def test_too_few_datapoints_fire_when_nothing_arrives() -> None:
    scenario = Scenario(rule("below: 3", "window: {over: 10m, reduce: count}", "for: 5m"))
    for minute in range(0, 40, 2):
        scenario.at(f"{minute}m").send(1)
    assert scenario.at("24h").log == ["49m opened dsp-hot"]
    opened = scenario.transitions()[0].payload
    assert (opened["first_value"], opened["value"]) == (2.0, 0.0)


def test_an_empty_window_does_not_fire() -> None:
    scenario = Scenario(rule("above: 5", "window: {over: 10m, reduce: max}")).send(9)
    assert scenario.at("24h").log == ["0s opened dsp-hot", "10m resolved dsp-hot"]
    assert "(no max over 10m)" in scenario.messages()[-1]


def test_a_window_needs_its_least_number_of_datapoints() -> None:
    scenario = Scenario(rule("above: 5", "window: {over: 10m, reduce: avg, min_count: 3}"))
    scenario.send(9).at("1m").send(9)
    assert scenario.log == []
    assert scenario.at("2m").send(9).at("1h").log == ["2m opened dsp-hot", "10m resolved dsp-hot"]


def test_enough_of_the_last_datapoints_must_fire() -> None:
    scenario = Scenario(rule("above: 5", "samples: {of: 5, at_least: 3}"))
    for minute, value in enumerate([9, 1, 9, 1, 1, 9, 9, 1, 1, 1, 1]):
        scenario.at(f"{minute}m").send(value)
    assert scenario.log == ["6m opened dsp-hot", "7m resolved dsp-hot"]


def test_a_value_that_is_older_than_the_newest_is_not_evaluated() -> None:
    scenario = Scenario(
        rule("above: 5", "no_data: alarm", name="hot") + rule("absent: true", name="gone") + watched()
    )
    scenario.send(1).at("1m").send_late(9)
    assert scenario.log == []
    scenario.send(9).at("2m").send_late(1).at("3m")
    assert scenario.log == ["1m opened hot"]


def test_a_value_that_is_older_than_the_newest_ends_missing_data() -> None:
    scenario = Scenario(
        watched() + rule("above: 5", "no_data: alarm", name="hot") + rule("absent: true", name="gone")
    )
    scenario.send(1).at("6m").send_late(9).at("7m")
    assert sorted(scenario.log) == ["5m opened gone", "5m opened hot", "6m resolved gone", "6m resolved hot"]


def test_a_rate_is_measured_by_the_clock_of_the_producer() -> None:
    """Six samples of a minute arrive in one message."""
    rule_ = Scenario(rule("rate_increase: 0.5")).rule
    state: RuleState = BLANK
    opened: list[Open] = []
    for number in range(6):
        ts = T0 + timedelta(seconds=10 * number)
        state, effects = step(rule_, state, Arrival(T0 + timedelta(1), 1, PLANT, KEY, number * 10, ts, {}))
        opened += [effect for effect in effects if isinstance(effect, Open)]
    assert len(opened) == 1


@pytest.mark.parametrize("line", ["rate_increase: 0", "window: {over: 10m, reduce: rate}\n  above: 0"])
def test_a_counter_that_was_reset_goes_on_rising(line: str) -> None:
    scenario = Scenario(f"datapoint_type: {{name: c, key: {KEY}, counter: true}}\n" + rule(line))
    for second, value in enumerate((100, 160, 220, 30, 90)):
        scenario.at(f"{second}m").send(value)
    assert scenario.log == ["1m opened dsp-hot"]


@pytest.mark.parametrize("value", [70, 70.0])
@pytest.mark.parametrize("fire", ["value * 2.0 > 100.0", "value - 5.0 > 60.0", "value > 65", "value >= 70.0"])
def test_a_number_is_a_number_whether_it_was_sent_with_a_fraction_or_not(fire: str, value: float) -> None:
    assert Scenario(rule(f"fire: {fire}")).send(value).log == ["0s opened dsp-hot"]


def test_the_value_of_the_alarm_is_that_of_the_window() -> None:
    scenario = Scenario(rule("above: 5", "window: {over: 10m, reduce: avg}")).send(4).send(8)
    assert scenario.transitions()[0].payload["value"] == 6.0


def test_a_rule_that_does_not_look_back_remembers_nothing() -> None:
    rule_ = Scenario(rule("above: 65")).rule
    state, effects = step(rule_, BLANK, Arrival(T0 + timedelta(1), 1, PLANT, KEY, 1, T0, {}))
    assert state is BLANK
    assert effects == ()
