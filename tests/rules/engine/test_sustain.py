"""`for`, `keep_firing_for` and `cooldown`: the exact instants at which alarms open and resolve."""

from datetime import timedelta

from tests.rules.engine.scenario import T0, Scenario, rule

HOT = rule("above: 65", "for: 10m")


def test_without_for_it_opens_at_once_and_resolves_at_once() -> None:
    scenario = Scenario(rule("above: 65"))
    scenario.at("1m").send(66).at("2m").send(65)
    assert scenario.log == ["1m opened dsp-hot", "2m resolved dsp-hot"]


def test_it_opens_after_exactly_for() -> None:
    scenario = Scenario(HOT).at("1m").send(70).at("10m59s").send(70)
    assert scenario.log == []
    assert scenario.at("11m").log == ["11m opened dsp-hot"]


def test_it_opens_at_its_nominal_time_however_late_the_next_datapoint_comes() -> None:
    scenario = Scenario(HOT).send(70).at("3h").send(50)
    assert scenario.log == ["10m opened dsp-hot", "3h resolved dsp-hot"]


def test_a_condition_that_clears_before_for_opens_nothing() -> None:
    scenario = Scenario(HOT).send(70).at("9m59s").send(60).at("1h")
    assert scenario.log == []
    assert scenario.alarms == {}
    assert scenario.timers == {}


def test_a_condition_that_stops_at_the_very_end_of_for_opens_nothing() -> None:
    """As in Prometheus: one bad sample of a minute and `for: 1m` page no one."""
    assert Scenario(HOT).send(70).at("10m").send(60).at("1h").log == []
    minutely = Scenario(rule("above: 65", "for: 1m"))
    assert minutely.send(10).at("1m").send(95).at("2m").send(10).at("1h").log == []


def test_a_condition_that_fires_again_at_the_very_end_of_keep_firing_for_stays_open() -> None:
    scenario = Scenario(rule("above: 65", "keep_firing_for: 5m"))
    assert scenario.send(70).at("1m").send(60).at("6m").send(70).at("1h").log == ["0s opened dsp-hot"]


def test_the_alarm_has_the_last_value_before_it_opened_and_the_first_one() -> None:
    scenario = Scenario(rule("above: 5", "for: 5m", "message: '{{ first_value }} to {{ value }}'"))
    for minute, value in enumerate((11, 50, 500, 5000)):
        scenario.at(f"{minute}m").send(value)
    (opened,) = scenario.at("1h").transitions()
    assert (opened.payload["first_value"], opened.payload["value"]) == (11, 5000)
    assert opened.payload["message"] == "11 to 5000"
    assert opened.at == T0 + timedelta(minutes=5)


def test_an_input_handles_an_earlier_deadline_at_its_nominal_time() -> None:
    scenario = Scenario(rule("above: 65", "for: 10m", "cooldown: 1h"), is_lazy=True)
    scenario.send(70).at("20m").send(60).at("21m").send(70).at("70m").send(60)
    assert scenario.log == [
        *("10m opened dsp-hot", "20m resolved dsp-hot"),
    ]


def test_a_value_that_fires_again_begins_a_new_for() -> None:
    scenario = Scenario(HOT).send(70).at("9m").send(60).at("10m").send(70).at("1h")
    assert scenario.log == ["20m opened dsp-hot"]


def test_flapping_faster_than_for_opens_nothing() -> None:
    scenario = Scenario(HOT)
    for minute in range(0, 120, 5):
        scenario.at(f"{minute}m").send(70 if minute % 10 else 60)
    assert scenario.at("115m").log == []


def test_between_fire_and_clear_an_open_alarm_stays_open() -> None:
    scenario = Scenario(rule("above: 65", "clear: value < 60.0"))
    scenario.send(66).at("1m").send(62).at("2m").send(59).at("3m").send(62)
    assert scenario.log == ["0s opened dsp-hot", "2m resolved dsp-hot"]


def test_between_fire_and_clear_a_pending_alarm_is_dropped() -> None:
    scenario = Scenario(rule("above: 65", "clear: value < 60.0", "for: 10m"))
    scenario.send(66).at("5m").send(62).at("1h")
    assert scenario.log == []


def test_it_resolves_after_exactly_keep_firing_for() -> None:
    scenario = Scenario(rule("above: 65", "keep_firing_for: 5m")).send(70).at("1m").send(60).at("5m59s")
    assert scenario.log == ["0s opened dsp-hot"]
    assert scenario.at("6m").log == ["0s opened dsp-hot", "6m resolved dsp-hot"]


def test_firing_again_before_the_end_of_keep_firing_for_is_one_alarm() -> None:
    scenario = Scenario(rule("above: 65", "keep_firing_for: 5m"))
    scenario.send(70).at("1m").send(60).at("5m").send(70).at("6m").send(60).at("1h")
    assert scenario.log == ["0s opened dsp-hot", "11m resolved dsp-hot"]


def test_while_keep_firing_for_runs_a_value_between_fire_and_clear_is_not_clear() -> None:
    scenario = Scenario(rule("above: 65", "clear: value < 60.0", "keep_firing_for: 5m"))
    scenario.send(70).at("1m").send(50).at("2m").send(62).at("20m").send(50).at("1h")
    assert scenario.log == ["0s opened dsp-hot", "25m resolved dsp-hot"]


def test_an_opening_within_the_cooldown_waits_for_its_end() -> None:
    scenario = Scenario(rule("above: 65", "cooldown: 1h"))
    scenario.send(70).at("1m").send(60).at("10m").send(70).at("2h")
    assert scenario.log == ["0s opened dsp-hot", "1m resolved dsp-hot", "1h opened dsp-hot"]


def test_a_condition_that_ends_within_the_cooldown_opens_nothing() -> None:
    scenario = Scenario(rule("above: 65", "cooldown: 1h"))
    scenario.send(70).at("1m").send(60).at("10m").send(70).at("20m").send(60).at("2h")
    assert scenario.log == ["0s opened dsp-hot", "1m resolved dsp-hot"]


def test_a_cooldown_counts_from_the_opening_and_not_from_the_beginning() -> None:
    scenario = Scenario(rule("above: 65", "for: 10m", "cooldown: 1h"))
    scenario.send(70).at("11m").send(60).at("12m").send(70).at("3h")
    assert scenario.log == ["10m opened dsp-hot", "11m resolved dsp-hot", "1h10m opened dsp-hot"]


def test_a_for_that_ends_after_the_cooldown_is_not_shortened() -> None:
    scenario = Scenario(rule("above: 65", "for: 10m", "cooldown: 20m"))
    scenario.send(70).at("11m").send(60).at("25m").send(70).at("3h")
    assert scenario.log == ["10m opened dsp-hot", "11m resolved dsp-hot", "35m opened dsp-hot"]


def test_several_values_of_one_instant_make_several_alarms_with_their_own_ids() -> None:
    scenario = Scenario(rule("above: 65")).send(70).send(60).send(70).send(60).send(70)
    assert [line.split()[1] for line in scenario.log] == ["opened", "resolved"] * 2 + ["opened"]
    assert len(scenario.alarms) == 3


def test_a_datapoint_that_changes_nothing_returns_the_same_state() -> None:
    scenario = Scenario(HOT).send(70)
    state = scenario.states["dsp-hot", "plant-7", "dsp.temperature"]
    assert scenario.at("1m").send(70).states["dsp-hot", "plant-7", "dsp.temperature"] is state
