"""Stale series: `absent`, `no_data`, and the variables of conditions."""

import pytest

from tests.rules.engine.scenario import Scenario, rule, watched

STALE_AFTER = "5m"


def test_a_series_without_a_type_is_never_stale() -> None:
    type_ = "datapoint_type: {name: other, key: other, interval: 1m}\n"
    scenario = Scenario(type_ + rule("absent: true", datapoint="**")).send(1).at("24h")
    assert scenario.log == []


def test_absent_fires_at_the_deadline_and_ends_with_the_next_datapoint() -> None:
    scenario = Scenario(watched() + rule("absent: true")).send(1).at("1h").send(2)
    assert scenario.log == ["5m opened dsp-hot", "1h resolved dsp-hot"]


def test_absent_with_for_counts_from_the_deadline() -> None:
    scenario = Scenario(watched() + rule("absent: true", "for: 10m")).send(1).at("1h")
    assert scenario.log == ["15m opened dsp-hot"]


def test_a_series_that_is_back_before_for_was_not_absent() -> None:
    scenario = (
        Scenario(watched() + rule("absent: true", "for: 10m")).send(1).at("14m").send(1).at("15m").send(1)
    )
    assert scenario.log == []


def test_by_default_a_stale_series_keeps_its_alarm() -> None:
    scenario = Scenario(watched() + rule("above: 65")).send(70).at("1h")
    assert scenario.log == ["0s opened dsp-hot"]


def test_by_default_for_continues_while_the_series_is_stale() -> None:
    scenario = Scenario(watched() + rule("above: 65", "for: 10m")).send(70).at("1h")
    assert scenario.log == ["10m opened dsp-hot"]


def test_by_default_a_clear_series_that_becomes_stale_opens_nothing() -> None:
    scenario = Scenario(watched() + rule("above: 65")).send(60).at("1h")
    assert scenario.log == []


def test_no_data_alarm_opens_for_a_clear_series_that_became_stale() -> None:
    scenario = Scenario(watched() + rule("above: 65", "no_data: alarm")).send(60).at("1h").send(60)
    assert scenario.log == ["5m opened dsp-hot", "1h resolved dsp-hot"]


def test_no_data_for_is_its_own_sustain() -> None:
    text = rule("above: 65", "for: 1h", "no_data: alarm", "no_data_for: 10m")
    scenario = Scenario(watched() + text).send(60).at("2h")
    assert scenario.log == ["15m opened dsp-hot"]


def test_no_data_alarm_ends_when_data_is_back_even_between_fire_and_clear() -> None:
    text = rule("above: 65", "clear: value < 60.0", "no_data: alarm")
    scenario = Scenario(watched() + text).send(50).at("10m").send(62)
    assert scenario.log == ["5m opened dsp-hot", "10m resolved dsp-hot"]


def test_no_data_alarm_continues_if_the_first_value_after_it_fires() -> None:
    scenario = Scenario(watched() + rule("above: 65", "no_data: alarm")).send(60).at("10m").send(70).at("11m")
    assert scenario.log == ["5m opened dsp-hot", "10m changed dsp-hot"]
    assert "is above 65 (70)" in scenario.messages()[-1]
    assert scenario.send(60).log[2:] == ["11m resolved dsp-hot"]


def test_a_pending_no_data_alarm_is_replaced_by_that_of_the_value() -> None:
    text = rule("above: 65", "for: 30m", "no_data: alarm", "no_data_for: 10m")
    scenario = Scenario(watched() + text).send(60).at("10m").send(70)
    for minute in range(12, 60, 2):
        scenario.at(f"{minute}m").send(70)
    assert scenario.log == ["40m opened dsp-hot"]


def test_no_data_alarm_keeps_an_alarm_open_that_was_about_to_resolve() -> None:
    scenario = Scenario(watched() + rule("above: 65", "keep_firing_for: 10m", "no_data: alarm"))
    scenario.send(70).at("1m").send(60).at("1h").send(60).at("2h")
    assert scenario.log == ["0s opened dsp-hot"]
    scenario.send(60).at("2h4m").send(60).at("2h8m").send(60).at("2h12m").send(60)
    assert scenario.log == ["0s opened dsp-hot", "2h10m resolved dsp-hot"]


def test_no_data_resolve_ends_the_alarm() -> None:
    scenario = Scenario(watched() + rule("above: 65", "no_data: resolve")).send(70).at("1h")
    assert scenario.log == ["0s opened dsp-hot", "5m resolved dsp-hot"]
    assert scenario.transitions()[-1].payload["reason"] == "no-data"


def test_no_data_resolve_waits_for_no_data_for() -> None:
    text = rule("above: 65", "no_data: resolve", "no_data_for: 10m")
    scenario = Scenario(watched() + text).send(70).at("14m").send(70).at("18m").send(70).at("1h")
    assert scenario.log == ["0s opened dsp-hot", "33m resolved dsp-hot"]


def test_no_data_resolve_drops_a_pending_alarm() -> None:
    scenario = Scenario(watched() + rule("above: 65", "for: 10m", "no_data: resolve")).send(70).at("1h")
    assert scenario.log == []


def test_a_condition_may_read_freshness_and_age() -> None:
    fire = """fire: 'value > 65.0 && freshness == "stale" && age >= duration("5m")'"""
    assert Scenario(watched() + rule(fire)).send(60).at("1h").log == []
    scenario = Scenario(watched() + rule(fire)).send(70).at("1h").send(70)
    assert scenario.log == ["5m opened dsp-hot", "1h resolved dsp-hot"]


def test_a_condition_over_a_stale_series_sees_the_last_datapoint() -> None:
    fire = (
        """fire: 'freshness == "stale" && age == duration("5m") && value == 70.0"""
        """ && arrived_at == timestamp("2026-03-04T10:00:00Z") && ts ==
        timestamp("2026-03-04T09:00:00Z")'"""
    )
    assert Scenario(watched() + rule(fire)).send(70).at("1h").log == ["5m opened dsp-hot"]


def test_a_window_of_a_stale_series_has_the_values_that_are_left_in_it() -> None:
    fire = """fire: 'freshness == "stale" && value == 1.0'"""
    scenario = Scenario(watched() + rule(fire, "window: {over: 6m, reduce: count}"))
    scenario.send(9).at("2m").send(9).at("3m").send(9).at("1h")
    assert scenario.log == ["8m opened dsp-hot"]


def test_a_stale_series_that_where_excludes_changes_nothing() -> None:
    text = rule("above: 65", "no_data: alarm", """where: 'labels.zone == "north"'""")
    scenario = Scenario(watched() + text).send(1, zone="south").at("1h")
    assert scenario.log == []


def test_new_data_ends_a_no_data_alarm_even_if_the_condition_fails() -> None:
    text = rule("""fire: 'labels.zone == "north" && value > 65.0'""", "no_data: alarm")
    scenario = Scenario(watched() + text).send(1, zone="north").at("10m").send(70)
    assert scenario.log == ["5m opened dsp-hot", "10m resolved dsp-hot"]


def test_age_is_zero_when_a_datapoint_arrives() -> None:
    scenario = Scenario(watched() + rule("""fire: 'age == duration("0s") && freshness == "fresh"'""")).send(1)
    assert scenario.log == ["0s opened dsp-hot"]


def test_on_stale_alarm_of_a_type_is_a_rule_of_its_own() -> None:
    text = watched("on_stale: alarm", "severity: high", "for: 10m") + rule("above: 65")
    scenario = Scenario(text).send(1).at("20m").send(1)
    assert scenario.log == ["15m opened stale:temperature", "20m resolved stale:temperature"]
    assert scenario.transitions()[0].alarm.severity == 4


def test_the_most_specific_type_decides_about_staleness() -> None:
    text = watched("on_stale: alarm", key="dsp.*") + watched(name="own", key="dsp.quiet")
    scenario = Scenario(text + rule("above: 65")).send(1, "dsp.quiet", owner="q").send(1, "dsp.loud").at("1h")
    assert scenario.log == ["5m opened stale:temperature"]


def test_a_deadline_before_a_datapoint_is_handled_first() -> None:
    scenario = Scenario(watched() + rule("above: 65", "no_data: alarm")).send(60).at("5m").send(60)
    assert scenario.log == ["5m opened dsp-hot", "5m resolved dsp-hot"]


@pytest.mark.parametrize("condition", ["above: 65", "below: 30"])
def test_a_window_that_becomes_empty_is_not_data(condition: str) -> None:
    text = rule(condition, "window: {over: 6m, reduce: max}", "no_data: alarm", "no_data_for: 10m")
    scenario = Scenario(watched() + text).send(50).at("1h").send(50)
    assert scenario.log == ["15m opened dsp-hot", "1h resolved dsp-hot"]


def test_the_window_of_another_series_that_becomes_empty_ends_no_alarm_for_missing_data() -> None:
    window = "window: {over: 6m, reduce: max}"
    text = rule("above: 65", window, "no_data: alarm", "per: owner", datapoint="dsp.*")
    scenario = (
        Scenario(watched(key="dsp.*") + text).send(50, key="dsp.a").at("10m").send(50, key="dsp.b").at("11m")
    )
    assert scenario.log == ["5m opened dsp-hot"]
