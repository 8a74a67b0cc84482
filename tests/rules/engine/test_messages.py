"""Messages and payloads of alarms."""

import pytest

from rules.engine import MessageFailed
from schemas.wire.alarm_events import transition_event_id
from tests.rules.engine.scenario import Scenario, rule, watched

TYPE = "datapoint_type: {name: t, key: '**', unit: °C, interval: 2m}\n"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["above: 65"], "is above 65 (71.2 °C)"),
        (["above: 65", "for: 10m"], "is above 65 for 10m (71.2 °C)"),
        (["below: 72.5", "for: 90s"], "is below 72.5 for 1m30s (71.2 °C)"),
        (["fire: 'value  > 65.0'"], "meets value > 65.0 (71.2 °C)"),
        (
            ["above: 65", "window: {over: 1h, reduce: avg}"],
            "is above 65 (avg over 1h 71.2 °C)",
        ),
        (["absent: true"], "has sent no data for 5m (last 71.2 °C)"),
        (["above: 100", "no_data: alarm"], "has sent no data for 5m (last 71.2 °C)"),
    ],
)
def test_the_message_of_an_opened_alarm(lines: list[str], message: str) -> None:
    scenario = Scenario(TYPE + rule(*lines)).send(71.2).at("59m")
    assert scenario.messages() == [f"dsp.temperature of plant-7 {message}"]


def test_the_message_of_a_rate() -> None:
    scenario = Scenario(TYPE + rule("rate_increase: 0.5")).send(1).at("1s").send(3)
    assert scenario.messages() == ["dsp.temperature of plant-7 is rising by more than 0.5 a second (3 °C)"]


def test_the_message_of_a_resolved_alarm() -> None:
    scenario = (
        Scenario(TYPE + rule("above: 65", "no_data: resolve")).send(70).at("1m").send(64).send(70).at("1h")
    )
    assert scenario.messages()[1] == "dsp.temperature of plant-7 is clear (64 °C)"
    assert scenario.messages()[3] == ("dsp.temperature of plant-7 is stale and counts as clear (last 70 °C)")


def test_the_payloads_of_both_transitions_are_complete() -> None:
    scenario = Scenario(TYPE + rule("above: 65", "for: 1m")).send(70, zone="a").at("2m").send(60, zone="a")
    opened, resolved = scenario.transitions()
    facts = {"key": "dsp.temperature", "unit": "°C", "threshold": "above 65", "labels": {"zone": "a"}}
    assert opened.payload.items() >= {**facts, "value": 70, "since": "2026-03-04T10:00:00Z"}.items()
    assert (
        resolved.payload.items()
        >= {
            **facts,
            "value": 60,
            "since": "2026-03-04T10:00:00Z",
            "opened_at": "2026-03-04T10:01:00Z",
            "reason": "cleared",
        }.items()
    )


def test_a_rule_may_have_its_own_message() -> None:
    template = 'message: "[{{ severity }}] {{ owner }}: {{ value | round }} {{ unit }} in {{ labels.zone }}"'
    scenario = Scenario(TYPE + rule("above: 65", template)).send(71.2, zone="hall 3")
    assert scenario.messages() == ["[warning] plant-7: 71 °C in hall 3"]


def test_a_message_that_cannot_be_filled_is_replaced_by_the_default_and_reported() -> None:
    scenario = Scenario(TYPE + rule("above: 65", "message: '{{ labels.zone }}'")).send(71.2)
    assert scenario.messages()[0].startswith("dsp.temperature of plant-7 is above 65")
    (failed,) = [effect for effect in scenario.effects if isinstance(effect, MessageFailed)]
    assert "zone" in failed.error


def test_a_long_text_is_shown_in_part() -> None:
    scenario = Scenario(rule("fire: 'size(value) > 10'")).send("x" * 5000)
    assert len(scenario.messages()[0]) < 250
    assert scenario.transitions()[0].payload["value"] == "x" * 5000


def test_ids_are_derived_from_what_happened_and_the_same_in_every_run() -> None:
    def alarm_ids() -> list[str]:
        scenario = Scenario(watched() + rule("above: 65", "for: 1m")).send(70).at("2m").send(60)
        return [str(effect.alarm.id) for effect in scenario.transitions()]

    assert alarm_ids() == alarm_ids()
    assert alarm_ids()[0] == "e45490e7-d657-5d6d-a375-96b01e207182"
    scenario = Scenario(rule("above: 65")).send(70)
    (opened,) = scenario.transitions()
    ids = {transition_event_id(opened.alarm.id, name, opened.at) for name in ("opened", "resolved")}
    assert len(ids) == 2
