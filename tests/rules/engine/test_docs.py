"""The rules of docs/rules.md, running."""

import re

from tests.paths import ROOT
from tests.rules.engine.scenario import Scenario

PAGE = (ROOT / "docs" / "rules.md").read_text()
(RULES,) = [text for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if "name: dsp-hot" in text]


def test_the_hot_dsp_opens_after_ten_minutes_and_resolves_after_two() -> None:
    scenario = Scenario(RULES)
    for minute in range(13):
        scenario.at(f"{minute}m").send(71.2, zone="north")
    assert scenario.log == ["10m opened dsp-hot"]
    assert scenario.messages() == ["dsp.temperature of plant-7 meets value > 65.0 for 10m (71.2 °C)"]
    scenario.at("13m").send(62, zone="north").at("14m").send(59, zone="north").at("15m").send(
        59, zone="north"
    )
    assert scenario.at("16m").log == ["10m opened dsp-hot", "16m resolved dsp-hot"]


def test_the_dsp_without_data_opens_five_minutes_after_it_is_stale() -> None:
    scenario = Scenario(RULES).send(20, zone="north").at("1h").send(20, zone="north")
    assert scenario.log == ["6m15s opened dsp-stale", "1h resolved dsp-stale"]


def test_the_full_disk_opens_at_most_every_six_hours() -> None:
    scenario = Scenario(RULES)
    for hour, used in enumerate((95.4, 50, 99, 99, 99, 99, 99, 50)):
        for minute in range(0, 60, 5):
            scenario.at(f"{hour * 60 + minute}m").send(used, "disk.sda.used")
    assert scenario.log == [
        "0s opened disk-full",
        "1h resolved disk-full",
        "6h opened disk-full",
        "7h resolved disk-full",
    ]
    assert scenario.messages()[0] == "disk.sda.used of plant-7 is at 95 %"


def test_the_link_that_is_down_for_a_minute_opens() -> None:
    scenario = Scenario(RULES).emit("link-down").at("30s").emit("link-up").at("2m").emit("link-down").at("5m")
    assert scenario.log == ["3m opened link-down"]
