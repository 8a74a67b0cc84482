"""Rules over events: opened by one event, resolved by another."""

from schemas.values.severities import level
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


PER_INTERFACE = """
event_rule:
  name: link
  event: link-*
  per: [payload.interface]
  fire: 'type == "link-down"'
  message: "{{ payload.interface }} of {{ owner }} is down ({{ event_type }})"
"""
ETH0, ETH1 = {"interface": "eth0"}, {"interface": "eth1", "peer": "sw-2"}


class TestPer:
    def test_each_value_has_an_alarm_of_its_own(self) -> None:
        scenario = Scenario(PER_INTERFACE).emit("link-down", payload=ETH0).at("1m")
        scenario.emit("link-down", payload=ETH1).at("2m").emit("link-up", payload=ETH0)
        assert scenario.log == ["0s opened link", "1m opened link", "2m resolved link"]
        assert [effect.alarm.instance for effect in scenario.transitions()] == [
            '["eth0"]',
            '["eth1"]',
            '["eth0"]',
        ]
        assert list(scenario.alarms.values()) == ["resolved", "open"]

    def test_the_message_and_the_payload_name_what_the_event_said(self) -> None:
        scenario = Scenario(PER_INTERFACE).emit("link-down", payload=ETH1)
        (opened,) = scenario.transitions()
        assert opened.payload["message"] == "eth1 of plant-7 is down (link-down)"
        assert opened.payload["payload"] == ETH1

    def test_a_number_is_one_instance_however_it_was_sent(self) -> None:
        text = PER_INTERFACE.replace("payload.interface", "payload.port").replace("{{ payload.port }}", "it")
        scenario = Scenario(text).emit("link-down", payload={"port": 3}).at("1m")
        assert scenario.emit("link-up", payload={"port": 3.0}).log == ["0s opened link", "1m resolved link"]

    def test_several_expressions_are_one_instance_and_a_missing_value_counts_as_null(self) -> None:
        text = PER_INTERFACE.replace("[payload.interface]", "[payload.interface, payload.peer]")
        scenario = Scenario(text).emit("link-down", payload=ETH1).emit("link-down", payload=ETH0)
        instances = [effect.alarm.instance for effect in scenario.transitions()]
        assert instances == ['["eth1","sw-2"]', '["eth0",null]']

    def test_owners_do_not_share_an_instance(self) -> None:
        scenario = Scenario(PER_INTERFACE).emit("link-down", payload=ETH0).at("1m")
        assert scenario.emit("link-up", owner="other", payload=ETH0).log == ["0s opened link"]


COUNTED = """
event_rule:
  name: flapping
  event: link-*
  fire: 'type == "link-down"'
  count: 3
  over: 10m
"""


class TestCount:
    def test_it_opens_with_the_last_of_enough_events_and_resolves_by_itself(self) -> None:
        scenario = Scenario(COUNTED)
        for minute in (0, 4, 8):
            scenario.at(f"{minute}m").emit("link-down")
        assert scenario.at("1h").log == ["8m opened flapping", "10m resolved flapping"]
        assert scenario.messages() == [
            "3 events in 10m of plant-7, the last one link-down",
            "fewer than 3 events of plant-7 in 10m",
        ]

    def test_events_that_lie_further_apart_open_nothing(self) -> None:
        scenario = Scenario(COUNTED)
        for minute in (0, 5, 10, 15, 20):
            scenario.at(f"{minute}m").emit("link-down")
        assert scenario.at("1h").log == []

    def test_more_events_keep_it_open(self) -> None:
        scenario = Scenario(COUNTED)
        for minute in (0, 1, 2, 9, 11, 12):
            scenario.at(f"{minute}m").emit("link-down")
        assert scenario.at("1h").log == ["2m opened flapping", "19m resolved flapping"]

    def test_events_that_do_not_fire_are_not_counted(self) -> None:
        scenario = Scenario(COUNTED).emit("link-down").emit("link-up").at("1m").emit("link-down")
        assert scenario.at("2m").emit("link-up").at("1h").log == []

    def test_clear_ends_it_and_begins_to_count_again(self) -> None:
        scenario = Scenario(COUNTED + "  clear: 'type == \"link-stable\"'\n")
        for minute in (0, 1, 2):
            scenario.at(f"{minute}m").emit("link-down")
        scenario.at("3m").emit("link-stable").at("4m").emit("link-down").at("5m").emit("link-down")
        assert scenario.log == ["2m opened flapping", "3m resolved flapping"]
        assert scenario.at("6m").emit("link-down").log[2:] == ["6m opened flapping"]

    def test_each_instance_is_counted_by_itself(self) -> None:
        scenario = Scenario(COUNTED + "  per: [payload.interface]\n")
        for minute, payload in enumerate([ETH0, ETH1, ETH0, ETH1, ETH0]):
            scenario.at(f"{minute}m").emit("link-down", payload=payload)
        assert scenario.log == ["4m opened flapping"]
        assert scenario.transitions()[0].alarm.instance == '["eth0"]'

    def test_keep_firing_for_extends_it(self) -> None:
        scenario = Scenario(COUNTED + "  keep_firing_for: 5m\n")
        for minute in (0, 1, 2):
            scenario.at(f"{minute}m").emit("link-down")
        assert scenario.at("1h").log == ["2m opened flapping", "15m resolved flapping"]


BY_EVENT = """event_rule: {name: any, event: problem-*, fire: 'type == "problem-found"', severity: event}"""


class TestSeverity:
    def test_it_is_that_of_the_event(self) -> None:
        scenario = Scenario(BY_EVENT).emit("problem-found", severity=level("high"))
        assert scenario.transitions()[0].alarm.severity == level("high")

    def test_an_event_without_one_is_a_warning(self) -> None:
        assert Scenario(BY_EVENT).emit("problem-found").transitions()[0].alarm.severity == level("warning")

    def test_a_more_severe_event_raises_it_and_a_milder_one_does_not_lower_it(self) -> None:
        scenario = Scenario(BY_EVENT)
        for minute, name in enumerate(["warning", "critical", "high"]):
            scenario.at(f"{minute}m").emit("problem-found", severity=level(name))
        scenario.at("9m").emit("problem-over")
        assert scenario.log == ["0s opened any", "1m changed any", "9m resolved any"]
        severities = [effect.alarm.severity for effect in scenario.transitions()]
        assert severities == [level("warning"), level("critical"), level("critical")]

    def test_a_pending_alarm_opens_with_the_highest(self) -> None:
        scenario = Scenario(BY_EVENT.replace("severity: event", "severity: event, for: 5m"))
        scenario.emit("problem-found").at("1m").emit("problem-found", severity=level("high")).at("5m")
        assert scenario.log == ["5m opened any"]
        assert scenario.transitions()[0].alarm.severity == level("high")

    def test_a_counted_alarm_has_that_of_the_event_that_opens_it(self) -> None:
        scenario = Scenario(COUNTED + "  severity: event\n").emit("link-down", severity=level("disaster"))
        scenario.at("1m").emit("link-down").at("2m").emit("link-down", severity=level("high"))
        assert scenario.transitions()[0].alarm.severity == level("high")
        scenario.at("3m").emit("link-down", severity=level("critical"))
        assert scenario.log[1:] == ["3m changed flapping"]
