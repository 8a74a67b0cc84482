"""`active_in` of event_rules, action_rules and channels: what is left out, what waits, and the reason."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from rules.documents.load import RulesInvalid, load_text
from rules.documents.yaml_text import document_text
from rules.replay.rule_tests import World
from schemas.documents import EventRuleDocument
from tests.rules.documents.load.problems import problems_of
from tests.rules.replay.rule_tests.worlds import START, give, logged, minutes, simulate

# START is Friday 2026-03-27, 12:00 UTC, 13:00 in Amsterdam.
CALENDARS = """---
calendar: {name: good-friday, dates: ["2026-04-03"]}
---
calendar: {name: workdays, weekdays: [mon, tue, wed, thu, fri], none_of: [good-friday]}
"""
OFFICE = "active_in: {only_in: [workdays], hours: ['09:00-17:00'], tz: Europe/Amsterdam}"
OPS = "---\nchannel: {name: ops, webhook: {url: 'https://example.org/x'}}\n"
HOT = "---\nevent_rule: {name: hot, datapoint: temp, above: 65, severity: high"
LOG = "---\naction: {name: say, log: {message: hi}}\n"
DAY = 24 * 60.0


def rule(*keys: str) -> str:
    return f"{HOT}{''.join(f', {key}' for key in keys)}}}\n{CALENDARS}"


def alarms(world: World) -> list[tuple[float, str]]:
    return [
        (minute, name.removeprefix("alarm-"))
        for minute, name, _ in logged(world, "event")
        if name.startswith("alarm-")
    ]


def messages(world: World) -> list[float]:
    return [minute for minute, _, state in logged(world, "step") if state == "completed"]


def test_an_event_rule_fires_in_its_active_times_only() -> None:
    world = simulate(rule(OFFICE))
    # 16:59, 17:00 and 18:00 in Amsterdam, Saturday, and Monday 09:00, which is an hour earlier in UTC.
    monday = 2 * DAY + 19 * 60
    give(world, (239, "a", 70), (240, "a", 70), (300, "a", 70), (DAY, "a", 70))
    give(world, (monday - 1, "a", 70), (monday, "a", 70))
    world.run_until(minutes(monday + 60))
    assert alarms(world) == [(239, "opened"), (240, "resolved"), (monday, "opened")]
    resolved = next(entry.details for entry in world.log if entry.name == "alarm-resolved")
    assert resolved["payload"]["reason"] == "inactive"
    assert resolved["payload"]["message"] == "temp of a: outside of 09:00-17:00 Europe/Amsterdam"


def test_a_resolution_names_the_calendar_that_excludes_the_day() -> None:
    start = datetime(2026, 4, 2, 12, tzinfo=UTC)
    world = simulate(rule("active_in: {except: [good-friday]}"), start)
    for hours in (0, 11, 12):
        world.at(start + timedelta(hours=hours), "arrive", owner="a", key="temp", value=70)
    world.run_until(start + timedelta(hours=20))
    assert alarms(world) == [(0, "opened"), (720, "resolved")]
    resolved = next(entry.details for entry in world.log if entry.name == "alarm-resolved")
    assert resolved["payload"]["message"] == "temp of a: excluded by calendar good-friday"


def test_a_condition_that_would_be_met_after_the_active_times_opens_nothing() -> None:
    """At 16:55 the five minutes end at 17:00, which is outside."""
    world = simulate(rule(OFFICE, "for: 5m"))
    give(world, (234, "a", 70), (235, "b", 70))
    world.run_until(minutes(600))
    assert alarms(world) == [(239, "opened")]


def test_samples_of_the_active_times_do_not_fire_outside() -> None:
    world = simulate(rule(OFFICE, "samples: {of: 3, at_least: 2}"))
    give(world, (238, "a", 70), (239, "a", 70), (240, "a", 70))
    world.run_until(minutes(600))
    assert alarms(world) == [(239, "opened"), (240, "resolved")]


def test_events_outside_of_the_active_times_open_nothing_and_end_nothing() -> None:
    text = f"---\nevent_rule: {{name: down, event: link-*, fire: 'type == \"link-down\"', {OFFICE}}}\n"
    world = simulate(text + CALENDARS)
    for minute, type in ((200, "link-down"), (300, "link-down"), (310, "link-up"), (320, "link-down")):
        world.at(minutes(minute), "emit", type=type, owner="a")
    world.run_until(minutes(600))
    assert alarms(world) == [(200, "opened"), (310, "resolved")]


def test_events_are_counted_in_the_active_times_only() -> None:
    text = f"---\nevent_rule: {{name: flap, event: link-down, count: 2, over: 1h, {OFFICE}}}\n"
    world = simulate(text + CALENDARS)
    for minute in (239, 241, 242):
        world.at(minutes(minute), "emit", type="link-down", owner="a")
    world.run_until(minutes(600))
    assert alarms(world) == []


def test_an_action_rule_skips_events_outside_of_its_active_times_with_the_reason() -> None:
    page = f"---\naction_rule: {{name: page, on: alarm, action: say, {OFFICE}}}\n"
    world = simulate(HOT + "}\n" + CALENDARS + LOG + page)
    give(world, (10, "a", 70), (300, "b", 70))
    world.run_until(minutes(600))
    runs = [
        (entry.owner, entry.state, entry.details.get("reason")) for entry in world.log if entry.kind == "run"
    ]
    assert [run for run in runs if run[1] == "skipped"] == [
        ("b", "skipped", "outside of 09:00-17:00 Europe/Amsterdam")
    ]
    assert messages(world) == [10]


def test_notifications_of_an_action_rule_begin_in_its_active_times_only() -> None:
    text = f"---\naction_rule: {{name: page, on: alarm, notify: [ops], {OFFICE}}}\n"
    world = simulate(HOT + "}\n" + CALENDARS + OPS + text)
    give(world, (10, "a", 70), (300, "a", 60), (310, "b", 70), (320, "b", 60))
    world.run_until(minutes(3 * DAY))
    assert messages(world) == [10, 300], "the end of what was notified is sent at any time"


def quiet(*keys: str) -> str:
    more = "".join(f", {key}" for key in keys)
    return f"---\nchannel: {{name: ops, webhook: {{url: 'https://example.org/x'}}, {OFFICE}{more}}}\n"


def test_a_channel_is_notified_of_what_is_still_open_when_its_active_times_begin() -> None:
    world = simulate(rule("notify: [ops]") + quiet())
    # Evening: one resolves in the night, one is open on Monday at nine.
    give(world, (10, "a", 70), (300, "b", 70), (310, "c", 70), (400, "b", 60), (500, "a", 60))
    world.run_until(minutes(4 * DAY))
    monday = 2 * DAY + 19 * 60
    assert sorted(messages(world)) == [10, monday, monday], "c is open, and a has resolved"


def test_an_urgent_alarm_reaches_a_channel_at_any_time() -> None:
    text = "---\nevent_rule: {name: fire, datapoint: temp, above: 90, severity: critical, notify: [ops]}\n"
    world = simulate(rule("notify: [ops]") + text + quiet("urgent: critical"))
    give(world, (300, "a", 70), (310, "a", 95))
    world.run_until(minutes(600))
    assert messages(world) == [310]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (rule("active_in: {only_in: [workday]}"), "unknown calendar 'workday'"),
        (rule("active_in: {hours: ['9-17']}"), "'9-17' is not a span of hours: write begin and end, as 08:00-18:00"),
        (rule("active_in: {hours: ['09:00-09:00']}"), "'09:00-09:00' is empty: write 00:00-24:00"),
        (rule("active_in: {hours: ['09:00-24:30']}"), "'09:00-24:30' ends after 24:00"),
        (rule("active_in: {only_in: [workdays], tz: Europe/Amsterdm}"), "unknown timezone 'Europe/Amsterdm'"),
        (rule("active_in: {only_in: [workdays], days: {}}"), "'days', which is filled in"),
        (rule("active_in: {tz: Europe/Paris}"), "needs one of only_in, except or hours"),
        (rule("active_in: {only_in: [workdays]}", "no_data: alarm"), "has both 'no_data' and 'active_in'"),
        (quiet().replace(OFFICE, "urgent: high"), "has 'urgent' without 'active_in'"),
        (
            rule() + "---\nevent_rule: {name: x, alarms: {all_of: [hot]}, active_in: {hours: ['01:00-02:00']}}",
            "is over alarms: put 'active_in' on the action_rule or the channel",
        ),
    ],
)  # fmt: skip
def test_mistakes_in_active_times_have_a_place(text: str, problem: str) -> None:
    assert any(problem in each for each in problems_of(text)), problems_of(text)


def test_a_rule_outside_of_the_files_changes_with_its_calendar() -> None:
    loaded = load_text(rule(OFFICE) + quiet())
    applied = [document.model for document in loaded.documents]
    changed = load_text('calendar: {name: good-friday, dates: ["2027-03-26"]}', applied=applied)
    assert [(each.kind, each.name) for each in changed.documents] == [
        ("calendar", "good-friday"),
        ("event_rule", "hot"),
        ("channel", "ops"),
    ]


def test_the_text_of_a_rule_names_its_calendars_only() -> None:
    loaded = load_text(rule(OFFICE))
    texts = [document_text(document.kind, document.data) for document in loaded.documents]
    again = load_text("---\n".join(texts))
    assert [document.data for document in again.documents] == [document.data for document in loaded.documents]
    model = again.of_kind("event_rule")[0].model
    assert isinstance(model, EventRuleDocument)
    assert model.active_in is not None
    assert model.active_in.days is not None
    assert "days:" not in texts[0]


def test_a_calendar_that_does_not_exist_is_not_applied() -> None:
    with pytest.raises(RulesInvalid):
        load_text(f"{HOT}, {OFFICE}}}")
    assert START.weekday() == 4
