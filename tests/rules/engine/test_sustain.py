"""`for`, `for_clear`, `cooldown`: when an alarm opens and when it resolves, to the instant."""

from tests.rules.engine.scenario import Scenario


def rule(*lines: str) -> str:
    body = "".join(f"  {line}\n" for line in lines)
    return f"event_rule:\n  name: dsp-hot\n  datapoint: dsp.temperature\n{body}"


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


def test_what_clears_before_for_never_was() -> None:
    scenario = Scenario(HOT).send(70).at("9m").send(60).at("1h")
    assert scenario.log == []
    assert scenario.alarms == {}
    assert scenario.timers == {}


def test_a_value_that_comes_back_begins_anew() -> None:
    scenario = Scenario(HOT).send(70).at("9m").send(60).at("10m").send(70).at("1h")
    assert scenario.log == ["20m opened dsp-hot"]
