"""Several thresholds of one rule: one alarm whose severity follows its value, up and down."""

from __future__ import annotations

import pytest

from rules.engine import Changed, Open
from schemas.values.severities import level, level_name
from tests.rules.engine.scenario import KEY, Scenario, rule, watched

LEVELS = "above: {warning: 80, critical: 95}"


def levels(scenario: Scenario) -> list[tuple[str, str]]:
    """Each transition with the severity of the alarm after it."""
    severities = [level_name(effect.alarm.severity) for effect in scenario.transitions()]
    return list(zip(scenario.log, severities, strict=True))


def test_an_alarm_escalates_and_de_escalates_as_one_alarm() -> None:
    scenario = Scenario(rule(LEVELS))
    for minute, value in enumerate([85, 96, 97, 90, 81, 70]):
        scenario.at(f"{minute}m").send(value)
    assert levels(scenario) == [
        ("0s opened dsp-hot", "warning"),
        ("1m changed dsp-hot", "critical"),
        ("3m changed dsp-hot", "warning"),
        ("5m resolved dsp-hot", "warning"),
    ]
    assert len({effect.alarm.id for effect in scenario.transitions()}) == 1


def test_it_opens_with_the_highest_level_that_is_reached() -> None:
    assert levels(Scenario(rule(LEVELS)).send(99)) == [("0s opened dsp-hot", "critical")]


def test_a_threshold_itself_is_not_reached() -> None:
    scenario = Scenario(rule(LEVELS)).send(80).at("1m").send(80.1).at("2m").send(95).at("3m").send(95.1)
    assert levels(scenario) == [("1m opened dsp-hot", "warning"), ("3m changed dsp-hot", "critical")]


def test_below_has_its_most_severe_level_at_the_bottom() -> None:
    scenario = Scenario(rule("below: {warning: 20, high: 10, disaster: 2}"))
    for minute, value in enumerate([15, 5, 1, 15, 30]):
        scenario.at(f"{minute}m").send(value)
    assert levels(scenario) == [
        ("0s opened dsp-hot", "warning"),
        ("1m changed dsp-hot", "high"),
        ("2m changed dsp-hot", "disaster"),
        ("3m changed dsp-hot", "warning"),
        ("4m resolved dsp-hot", "warning"),
    ]


def test_a_change_names_the_level_the_value_and_the_severity_before() -> None:
    scenario = Scenario(rule(LEVELS)).send(85).at("1m").send(96)
    opened, changed = scenario.transitions()
    assert isinstance(opened, Open)
    assert isinstance(changed, Changed)
    assert (opened.payload["threshold"], changed.payload["threshold"]) == ("above 80", "above 95")
    assert changed.payload["previous_severity"] == level("warning")
    assert (changed.payload["value"], changed.payload["first_value"], changed.payload["change"]) == (
        96,
        85,
        1,
    )
    assert changed.payload["since"] == opened.payload["since"]
    assert (changed.payload["joined"], changed.payload["left"]) == ([], [])
    assert changed.payload["message"] == f"{KEY} of plant-7 is above 95 (96)"


class TestFor:
    def test_it_belongs_to_the_alarm_and_the_level_at_its_end_counts(self) -> None:
        scenario = Scenario(rule(LEVELS, "for: 5m"))
        scenario.send(85).at("2m").send(96).at("6m").send(85)
        assert levels(scenario) == [("5m opened dsp-hot", "critical"), ("6m changed dsp-hot", "warning")]

    def test_a_level_that_ends_before_the_opening_leaves_no_trace(self) -> None:
        scenario = Scenario(rule(LEVELS, "for: 5m"))
        scenario.send(96).at("4m").send(85).at("5m")
        (opened,) = scenario.transitions()
        assert levels(scenario) == [("5m opened dsp-hot", "warning")]
        assert (opened.payload["threshold"], opened.payload["value"]) == ("above 80", 85)

    def test_a_level_of_an_open_alarm_changes_at_once(self) -> None:
        scenario = Scenario(rule(LEVELS, "for: 5m")).send(85).at("10m").send(96).at("10m").send(85)
        assert levels(scenario)[1:] == [
            ("10m changed dsp-hot", "critical"),
            ("10m changed dsp-hot", "warning"),
        ]


class TestClear:
    def test_between_clear_and_the_thresholds_it_keeps_the_lowest_level(self) -> None:
        scenario = Scenario(rule(LEVELS, "clear: value < 70.0"))
        for minute, value in enumerate([96, 75, 71, 97, 75, 69]):
            scenario.at(f"{minute}m").send(value)
        assert levels(scenario) == [
            ("0s opened dsp-hot", "critical"),
            ("1m changed dsp-hot", "warning"),
            ("3m changed dsp-hot", "critical"),
            ("4m changed dsp-hot", "warning"),
            ("5m resolved dsp-hot", "warning"),
        ]

    def test_keep_firing_for_ends_the_alarm_and_not_the_level(self) -> None:
        scenario = Scenario(rule(LEVELS, "keep_firing_for: 5m")).send(96).at("1m").send(10).at("6m")
        assert levels(scenario) == [("0s opened dsp-hot", "critical"), ("6m resolved dsp-hot", "critical")]

    def test_a_series_that_fires_again_while_it_clears_has_the_level_of_its_value(self) -> None:
        scenario = Scenario(rule(LEVELS, "keep_firing_for: 5m")).send(85).at("1m").send(10).at("2m").send(99)
        assert levels(scenario) == [("0s opened dsp-hot", "warning"), ("2m changed dsp-hot", "critical")]
        assert scenario.messages()[-1] == f"{KEY} of plant-7 is above 95 (99)"


def test_each_series_has_its_own_level() -> None:
    scenario = Scenario(rule(LEVELS, datapoint="disk.*"))
    scenario.send(85, "disk.a").send(96, "disk.b").at("1m").send(97, "disk.a").at("2m").send(70, "disk.b")
    assert levels(scenario) == [
        ("0s opened dsp-hot", "warning"),
        ("0s opened dsp-hot", "critical"),
        ("1m changed dsp-hot", "critical"),
        ("2m resolved dsp-hot", "critical"),
    ]
    assert [effect.alarm.instance for effect in scenario.transitions()] == [
        *("disk.a", "disk.b", "disk.a", "disk.b"),
    ]


class TestPerOwner:
    def test_the_alarm_has_the_highest_level_of_its_series(self) -> None:
        scenario = Scenario(rule(LEVELS, "per: owner", datapoint="disk.*"))
        scenario.send(85, "disk.a").at("1m").send(96, "disk.b").at("2m").send(97, "disk.a")
        scenario.at("3m").send(85, "disk.b").at("4m").send(70, "disk.a").at("5m").send(70, "disk.b")
        assert levels(scenario) == [
            ("0s opened dsp-hot", "warning"),
            ("1m changed dsp-hot", "critical"),
            ("3m changed dsp-hot", "critical"),
            ("4m changed dsp-hot", "warning"),
            ("5m resolved dsp-hot", "warning"),
        ]

    def test_the_message_names_the_series_that_has_the_level(self) -> None:
        scenario = Scenario(rule(LEVELS, "per: owner", datapoint="disk.*"))
        scenario.send(85, "disk.a").at("1m").send(96, "disk.b").at("2m").send(85, "disk.b")
        assert scenario.messages() == [
            "disk.a of plant-7 is above 80 (85)",
            "disk.b of plant-7 is above 95 (96), and disk.a",
            "disk.b of plant-7 is above 80 (85), and disk.a",
        ]

    def test_when_another_series_has_the_level_the_message_follows(self) -> None:
        scenario = Scenario(rule(LEVELS, "per: owner", datapoint="disk.*"))
        scenario.send(96, "disk.a").send(97, "disk.b").at("1m").send(85, "disk.a")
        assert scenario.messages()[-1] == "disk.b of plant-7 is above 95 (97), and disk.a"

    def test_owners_are_independent(self) -> None:
        scenario = Scenario(rule(LEVELS, "per: owner", datapoint="disk.*"))
        scenario.send(85, "disk.a", owner="x").send(96, "disk.a", owner="y")
        assert levels(scenario) == [
            ("0s opened dsp-hot of x", "warning"),
            ("0s opened dsp-hot of y", "critical"),
        ]


def test_a_window_has_the_level_of_its_result() -> None:
    scenario = Scenario(rule(LEVELS, "window: {over: 10m, reduce: max}")).send(96).at("5m").send(85).at("30m")
    assert [severity for _, severity in levels(scenario)] == ["critical", "warning", "warning"]
    assert [line.split()[1] for line in scenario.log] == ["opened", "changed", "resolved"]


def test_samples_and_levels_together() -> None:
    scenario = Scenario(rule(LEVELS, "samples: {of: 3, at_least: 2}"))
    for minute, value in enumerate([85, 96, 99]):
        scenario.at(f"{minute}m").send(value)
    assert levels(scenario) == [("1m opened dsp-hot", "critical")]


def test_missing_data_has_the_level_of_the_last_value() -> None:
    scenario = Scenario(watched() + rule(LEVELS, "no_data: alarm")).send(99).at("1m").send(50).at("7m")
    assert levels(scenario)[-1] == ("6m opened dsp-hot", "warning")


@pytest.mark.parametrize("is_stored", [True, False])
@pytest.mark.parametrize("is_lazy", [True, False])
def test_levels_do_not_depend_on_storing_or_on_when_time_passes(is_stored: bool, is_lazy: bool) -> None:
    text = rule(LEVELS, "for: 90s", "clear: value < 70.0", "keep_firing_for: 150s")
    scenario = Scenario(text, is_stored=is_stored, is_lazy=is_lazy)
    for minute, value in enumerate([85, 99, 99, 85, 60, 99, 60, 60, 85, 60, 60, 60, 60, 60]):
        scenario.at(f"{minute}m").send(value)
    assert levels(scenario) == [
        ("1m30s opened dsp-hot", "critical"),
        ("3m changed dsp-hot", "warning"),
        ("5m changed dsp-hot", "critical"),
        ("8m changed dsp-hot", "warning"),
        ("11m30s resolved dsp-hot", "warning"),
    ]
