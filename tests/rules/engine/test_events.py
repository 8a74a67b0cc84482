"""Rules over events: opened by one event, resolved by another."""

from tests.rules.engine.scenario import Scenario

LINK = """
event_rule:
  name: link
  event: link-*
  where: 'payload.port != "mgmt"'
  fire: 'type == "link-down"'
  for: 5m
  severity: critical
"""
PORT = {"port": "eth0"}


def test_an_event_opens_the_alarm_and_another_resolves_it() -> None:
    scenario = Scenario(LINK).emit("link-down", payload=PORT).at("10m").emit("link-up", payload=PORT)
    assert scenario.log == ["5m opened link", "10m resolved link"]


def test_an_alarm_that_clears_within_for_is_dropped() -> None:
    assert (
        Scenario(LINK).emit("link-down", payload=PORT).at("4m").emit("link-up", payload=PORT).at("1h").log
        == []
    )


def test_events_that_the_rule_does_not_cover_change_nothing() -> None:
    scenario = (
        Scenario(LINK).emit("link-down", payload=PORT).at("1m").emit("link-up", payload={"port": "mgmt"})
    )
    assert scenario.emit("uplink-down", payload=PORT).at("1h").log == ["5m opened link"]


def test_owners_have_separate_alarms_and_an_event_without_an_owner_has_one_too() -> None:
    scenario = Scenario(LINK).emit("link-down", owner="", payload=PORT).emit("link-up", payload=PORT).at("1h")
    assert scenario.log == ["5m opened link of "]
    assert scenario.messages() == ["link-down for 5m"]


def test_with_clear_alone_every_other_event_fires() -> None:
    scenario = Scenario("""event_rule: {name: backup, event: backup-*, clear: 'type == "backup-done"'}""")
    scenario.emit("backup-failed").at("1m").emit("backup-stalled").at("2m").emit("backup-done")
    assert scenario.log == ["0s opened backup", "2m resolved backup"]


def test_an_alarm_over_events_names_the_event_that_began_it() -> None:
    scenario = Scenario(LINK).emit("link-down", payload=PORT).at("5m")
    alarm = scenario.transitions()[0].alarm
    assert alarm.payload["event_type"] == "link-down"
    assert str(alarm.source_event_id) == alarm.payload["event_id"]
    assert alarm.payload["message"] == "link-down of plant-7 for 5m"
    assert "value" not in alarm.payload


def test_a_rule_does_not_see_the_events_of_its_own_alarm() -> None:
    text = """event_rule: {name: any, event: alarm-*, fire: 'type == "alarm-opened"'}"""
    scenario = Scenario(text).emit("alarm-opened", rule="any")
    assert scenario.log == []
    assert scenario.emit("alarm-opened", rule="other").log == ["0s opened any"]
