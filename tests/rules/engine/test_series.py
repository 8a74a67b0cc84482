"""Several series, several owners: an alarm per series, or one per owner while any series fires."""

from tests.rules.engine.scenario import Scenario, rule

DISKS = rule(
    "above: 90", "for: 10m", "keep_firing_for: 5m", "per: owner", name="full", datapoint="disk.*.used"
)


def test_owners_have_alarms_of_their_own() -> None:
    scenario = Scenario(rule("above: 65"))
    scenario.send(70, owner="a").at("1m").send(70, owner="b").at("2m").send(60, owner="a")
    assert scenario.log == ["0s opened dsp-hot of a", "1m opened dsp-hot of b", "2m resolved dsp-hot of a"]


def test_every_series_has_an_alarm_of_its_own() -> None:
    scenario = Scenario(rule("above: 90", name="full", datapoint="disk.*.used"))
    scenario.send(95, "disk.root.used").at("5m").send(99, "disk.data.used").at("10m").send(
        10, "disk.root.used"
    )
    assert scenario.log == ["0s opened full", "5m opened full", "10m resolved full"]
    payloads = [transition.payload for transition in scenario.transitions()]
    assert [payload["instance"] for payload in payloads] == [
        "disk.root.used",
        "disk.data.used",
        "disk.root.used",
    ]
    assert "disk.data.used of plant-7 is above 90 (99" in payloads[1]["message"]


def test_labels_that_are_dimensions_make_series_of_their_own() -> None:
    text = "datapoint_type: {name: temp, key: cpu.temp, dimensions: [socket, core]}\n"
    scenario = Scenario(text + rule("above: 80", name="hot", datapoint="cpu.temp"))
    for minute in range(3):
        scenario.at(f"{minute}m").send(90, "cpu.temp", core="0").send(40, "cpu.temp", core="1", rack="7")
    scenario.send(91, "cpu.temp", core='a"b', socket="1")
    opened = [transition.payload for transition in scenario.transitions()]
    assert [payload["instance"] for payload in opened] == [
        'cpu.temp{core="0"}',
        'cpu.temp{socket="1",core="a\\"b"}',
    ]
    assert (opened[0]["key"], opened[0]["labels"]) == ("cpu.temp", {"core": "0"})
    assert 'cpu.temp{core="0"} of plant-7 is above 80' in opened[0]["message"]


def test_conditions_read_the_key_without_its_dimensions() -> None:
    text = "datapoint_type: {name: temp, key: cpu.temp, dimensions: [core]}\n"
    where = """where: 'key == "cpu.temp" && labels.core == "0"'"""
    scenario = Scenario(text + rule("above: 80", where, datapoint="cpu.*"))
    assert scenario.send(90, "cpu.temp", core="1").send(90, "cpu.temp", core="0").log == ["0s opened dsp-hot"]


def test_labels_that_are_no_dimensions_are_data() -> None:
    scenario = Scenario(rule("above: 80", datapoint="cpu.temp"))
    scenario.send(90, "cpu.temp", core="0").at("1s").send(40, "cpu.temp", core="1")
    assert scenario.log == ["0s opened dsp-hot", "1s resolved dsp-hot"]


def test_a_rule_evaluates_only_the_keys_of_its_pattern() -> None:
    scenario = Scenario(DISKS).send(99, "disk.used").send(99, "disk.sda.part.used").send(99, "disk.sda.free")
    assert scenario.at("1h").log == []


def test_the_alarm_stays_open_while_any_series_fires() -> None:
    scenario = Scenario(DISKS)
    scenario.send(95, "disk.a.used").at("2m").send(95, "disk.b.used")
    scenario.at("20m").send(10, "disk.a.used").at("30m").send(10, "disk.b.used").at("1h")
    assert scenario.log == ["10m opened full", "12m changed full", "25m changed full", "35m resolved full"]
    assert scenario.messages()[1].endswith("(95), and disk.b.used")
    assert "disk.b.used of plant-7 is above 90" in scenario.messages()[2]
    assert "disk.a.used" not in scenario.messages()[2]
    payload = scenario.transitions()[2].payload
    assert (payload["series"], payload["joined"], payload["left"]) == (["disk.b.used"], [], ["disk.a.used"])


def test_without_keep_firing_for_a_series_leaves_the_alarm_at_once() -> None:
    scenario = Scenario(rule("above: 80", "per: owner", datapoint="disk.*"))
    scenario.send(85, "disk.a").at("1m").send(86, "disk.b").at("4m").send(10, "disk.a").at("9m")
    assert scenario.log == ["0s opened dsp-hot", "1m changed dsp-hot", "4m changed dsp-hot"]
    assert scenario.messages()[-1] == "disk.b of plant-7 is above 80 (86)"
    assert scenario.transitions()[-1].payload["left"] == ["disk.a"]
    assert scenario.send(10, "disk.b").log[3:] == ["9m resolved dsp-hot"]


def test_a_series_that_does_not_fire_for_long_enough_does_not_hold_the_alarm() -> None:
    scenario = Scenario(DISKS.replace("keep_firing_for: 5m", "cooldown: 1s")).send(95, "disk.a.used")
    scenario.at("11m30s").send(95, "disk.b.used").at("12m").send(10, "disk.a.used")
    scenario.at("16m30s").send(10, "disk.b.used").at("1h")
    assert scenario.log == ["10m opened full", "12m resolved full"]


def test_a_series_that_has_still_to_join_begins_the_next_alarm() -> None:
    scenario = Scenario(DISKS).send(95, "disk.a.used").at("11m").send(95, "disk.b.used")
    scenario.at("12m").send(10, "disk.a.used").at("1h")
    assert scenario.log == ["10m opened full", "17m resolved full", "21m opened full"]
    assert scenario.transitions()[-1].payload["series"] == ["disk.b.used"]


def test_for_must_have_passed_for_one_and_the_same_series() -> None:
    scenario = Scenario(DISKS).send(95, "disk.a.used").at("8m").send(95, "disk.b.used")
    scenario.at("9m").send(10, "disk.a.used").at("1h")
    assert scenario.log == ["18m opened full"]
    assert scenario.transitions()[0].payload["key"] == "disk.b.used"


def test_the_series_that_has_fired_for_longest_begins_the_alarm() -> None:
    scenario = Scenario(DISKS).send(95, "disk.b.used").at("1m").send(95, "disk.a.used").at("1h")
    assert scenario.log == ["10m opened full", "11m changed full"]
    assert scenario.transitions()[0].payload["key"] == "disk.b.used"


def test_a_second_series_that_fires_does_not_touch_the_pending_alarm() -> None:
    scenario = Scenario(DISKS).send(95, "disk.a.used").at("1m")
    before = list(scenario.effects)
    assert scenario.send(95, "disk.b.used").effects == before


def test_a_series_that_was_clear_for_exactly_long_enough_is_over() -> None:
    scenario = Scenario(
        rule("above: 90", "clear: value < 80.0", "keep_firing_for: 5m", "per: owner", datapoint="disk.**")
    )
    scenario.send(95, "disk.a").send(95, "disk.b").at("1m").send(70, "disk.a")
    scenario.at("6m1s").send(85, "disk.a").at("8m").send(70, "disk.b").at("1h")
    assert scenario.log == [
        "0s opened dsp-hot",
        "0s changed dsp-hot",
        "6m changed dsp-hot",
        "13m resolved dsp-hot",
    ]


def test_a_series_that_was_clear_for_long_enough_must_fire_to_count_again() -> None:
    scenario = Scenario(
        rule("above: 90", "clear: value < 80.0", "keep_firing_for: 5m", "per: owner", datapoint="disk.**")
    )
    scenario.send(95, "disk.a").send(95, "disk.b").at("1m").send(70, "disk.a")
    scenario.at("7m").send(85, "disk.a").at("8m").send(70, "disk.b").at("1h")
    assert scenario.log[-2:] == ["6m changed dsp-hot", "13m resolved dsp-hot"]


def test_a_series_that_is_not_clear_for_long_enough_keeps_the_alarm_open() -> None:
    scenario = Scenario(
        rule("above: 90", "clear: value < 80.0", "keep_firing_for: 5m", "per: owner", datapoint="disk.**")
    )
    scenario.send(95, "disk.a").send(95, "disk.b").at("1m").send(70, "disk.a")
    scenario.at("4m").send(85, "disk.a").at("8m").send(70, "disk.b").at("1h")
    assert scenario.log == ["0s opened dsp-hot", "0s changed dsp-hot", "13m changed dsp-hot"]


def test_the_resolution_names_the_series_that_was_clear_last() -> None:
    scenario = Scenario(DISKS).send(95, "disk.a.used").send(96, "disk.b.used")
    scenario.at("20m").send(10, "disk.a.used").at("21m").send(11, "disk.b.used").at("1h")
    resolved = scenario.transitions()[-1].payload
    assert (resolved["key"], resolved["value"]) == ("disk.b.used", 11)


def test_where_chooses_series_by_owner_key_and_labels() -> None:
    text = rule("above: 65", """where: 'labels.zone == "north" && owner.startsWith("plant-")'""")
    scenario = Scenario(text).send(70, zone="south").send(70, owner="hall-1", zone="north").send(70)
    assert scenario.log == []
    assert scenario.send(70, zone="north").log == ["0s opened dsp-hot"]


def test_a_series_whose_labels_leave_the_rule_counts_as_clear() -> None:
    scenario = Scenario(rule("above: 65", """where: 'labels.zone == "north"'"""))
    scenario.send(70, zone="north").at("1m").send(70, zone="south")
    assert scenario.log == ["0s opened dsp-hot", "1m resolved dsp-hot"]


def test_where_is_evaluated_again_only_when_the_labels_change() -> None:
    scenario = Scenario(rule("above: 65", """where: 'labels.zone == "north"'"""))
    for minute, zone in enumerate(("south", "south", "north", "north", "south")):
        scenario.at(f"{minute}m").send(70, zone=zone)
    assert scenario.log == ["2m opened dsp-hot", "4m resolved dsp-hot"]


def test_the_labels_of_the_type_count_as_those_of_its_series() -> None:
    type_ = "datapoint_type: {name: t, key: dsp.temperature, labels: {zone: north, line: a}}\n"
    scenario = Scenario(
        type_ + rule("above: 65", """where: 'labels.zone == "north" && labels.line == "b"'""")
    )
    assert scenario.send(70).log == []
    assert scenario.send(70, line="b").log == ["0s opened dsp-hot"]
    assert scenario.transitions()[0].payload["labels"] == {"zone": "north", "line": "b"}
