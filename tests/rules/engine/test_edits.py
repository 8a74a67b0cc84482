"""Rules that change while alarms are pending, open and clearing."""

from datetime import timedelta

import pytest

from rules.engine import Arrival, CancelSustain, DropPending, pass_time, step
from tests.rules.engine.scenario import KEY, PLANT, T0, Scenario, rule

HOT = rule("above: 65", "for: 10m")


def test_an_edit_of_another_rule_changes_nothing() -> None:
    scenario = Scenario(HOT).send(70).at("5m").apply(HOT + rule("above: 1", name="other")).at("1h")
    assert scenario.log == ["10m opened dsp-hot"]


@pytest.mark.parametrize("line", ["severity: high", "message: hot", "description: new"])
def test_an_edit_that_changes_no_decision_keeps_the_state(line: str) -> None:
    scenario = (
        Scenario(HOT).send(70).at("5m").apply(rule("above: 65", "for: 10m", line)).at("6m").send(70).at("1h")
    )
    assert scenario.log == ["10m opened dsp-hot"]


@pytest.mark.parametrize("edited", ["above: 60", "below: 99", "fire: value > 65.0 && owner != ''"])
def test_a_pending_alarm_begins_again_under_another_condition(edited: str) -> None:
    scenario = Scenario(HOT).send(70).at("5m").apply(rule(edited, "for: 10m")).at("6m").send(70).at("1h")
    assert scenario.log == ["16m opened dsp-hot"]


def test_a_pending_alarm_begins_again_under_another_timing() -> None:
    scenario = Scenario(HOT).send(70).at("5m").apply(rule("above: 65", "for: 20m")).at("6m").send(70).at("1h")
    assert scenario.log == ["26m opened dsp-hot"]


def test_an_open_alarm_is_kept_until_the_new_rule_clears_it() -> None:
    scenario = Scenario(rule("above: 65")).send(70).at("1m").apply(rule("above: 80")).at("2m")
    assert scenario.log == ["0s opened dsp-hot"]
    scenario.send(90).at("3m").send(75)
    assert scenario.log == ["0s opened dsp-hot", "3m resolved dsp-hot"]


def test_an_alarm_that_was_clearing_is_open_again_until_the_new_rule_clears_it() -> None:
    scenario = Scenario(rule("above: 65", "keep_firing_for: 10m")).send(70).at("1m").send(60)
    scenario.apply(rule("above: 50", "keep_firing_for: 10m")).at("2m").send(60).at("1h").send(40).at("3h")
    assert scenario.log == ["0s opened dsp-hot", "1h10m resolved dsp-hot"]


def test_an_alarm_that_was_clearing_can_be_cleared_by_the_new_rule_at_any_time() -> None:
    scenario = Scenario(rule("above: 65", "keep_firing_for: 10m")).send(70).at("1m").send(60)
    scenario.apply(rule("above: 50", "keep_firing_for: 20m"))
    assert scenario.at("1h").send(40).at("3h").log == ["0s opened dsp-hot", "1h20m resolved dsp-hot"]


def test_a_type_that_is_declared_later_does_not_disturb_a_pending_alarm() -> None:
    type_ = "datapoint_type: {name: t, key: dsp.temperature, value: number}\n"
    scenario = Scenario(HOT).send(70).at("5m").apply(type_ + HOT).at("6m").send(70).at("1h")
    assert scenario.log == ["10m opened dsp-hot"]


def test_an_alarm_whose_series_the_rule_no_longer_covers_is_resolved_with_the_reason() -> None:
    scenario = Scenario(rule("above: 65", datapoint="dsp.*")).send(70)
    scenario.at("1m").apply(rule("above: 65", datapoint="dsp.pressure"))
    assert scenario.log == ["0s opened dsp-hot", "1m resolved dsp-hot"]
    assert scenario.transitions()[-1].payload["reason"] == "rule-changed"


@pytest.mark.parametrize(
    "without", ["", rule("above: 65", "enabled: false"), rule("above: 65", name="renamed")]
)
def test_the_alarm_of_a_removed_rule_is_resolved_with_the_reason(without: str) -> None:
    other = rule("above: 1000", name="other")
    scenario = Scenario(rule("above: 65", "keep_firing_for: 1h") + other).send(70).at("1m").send(60).at("2m")
    scenario.apply(without + other)
    assert scenario.log == ["0s opened dsp-hot", "2m resolved dsp-hot"]
    assert scenario.transitions()[-1].payload["reason"] == "rule-removed"
    assert scenario.timers == {}


def test_a_pending_alarm_of_a_removed_rule_is_dropped() -> None:
    scenario = Scenario(HOT).send(70).at("1m").apply(rule("above: 1000", name="other")).at("1h")
    assert (scenario.log, scenario.alarms, scenario.timers) == ([], {}, {})


def test_a_cooldown_survives_an_edit() -> None:
    scenario = Scenario(rule("above: 65", "cooldown: 1h")).send(70).at("1m").send(60)
    scenario.apply(rule("above: 60", "cooldown: 2h")).at("5m").send(70).at("3h")
    assert scenario.log[2:] == ["2h opened dsp-hot"]


def test_a_state_from_before_an_edit_is_adopted_with_the_next_input() -> None:
    before, after = Scenario(HOT).send(70), Scenario(rule("above: 99", "for: 10m"))
    state = before.states["dsp-hot", "plant-7", "dsp.temperature"]
    moved, effects = step(after.rule, state, Arrival(T0 + timedelta(minutes=1), 1, PLANT, KEY, 70, T0, {}))
    assert [type(effect) for effect in effects] == [CancelSustain, DropPending]
    assert (moved.phase, moved.fingerprint) == ("ok", after.rule.fingerprint)


def test_a_window_from_before_an_edit_decides_nothing_when_time_passes() -> None:
    """A sum of the old window would be read as a maximum of the new one."""
    summing = rule("above: 300", "window: {over: 20s, reduce: sum}")
    before = Scenario(summing).send(40).at("10s").send(40).send(40)
    after = Scenario(rule("above: 65", "window: {over: 20s, reduce: max}"))
    state = before.states["dsp-hot", "plant-7", "dsp.temperature"]
    moved, effects = pass_time(after.rule, PLANT, state, T0 + timedelta(seconds=25))
    assert effects == ()
    assert (moved.phase, moved.tracks, moved.expire_at) == ("ok", {}, None)
    assert moved.fingerprint == after.rule.fingerprint


def test_an_edit_forgets_earlier_values() -> None:
    scenario = Scenario(rule("fire: 'previous > 1.0'")).send(5).apply(rule("fire: 'previous > 2.0'"))
    assert scenario.send(5).log == []
    assert scenario.send(5).log == ["0s opened dsp-hot"]
