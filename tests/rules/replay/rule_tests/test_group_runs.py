"""Runs of actions in virtual time: groups that know all their alarms, groups that take turns, and rate
limits that delay."""

from __future__ import annotations

from datetime import timedelta

import pytest

from rules.replay.rule_tests import World
from tests.rules.replay.rule_tests.worlds import START, give, logged, minutes, simulate

HOT = "event_rule: {name: hot, datapoint: temp, above: 50, severity: high%s}\n"
OPS = "---\nchannel: {name: ops, webhook: {url: 'https://hooks.example.com/1'}%s}\n"


class TestRunsOfActions:
    CALL = "---\naction: {name: call, steps: [wait: {for: 10m}, log: {message: '%s'}]}\n"
    BY_RULE = "---\naction_rule: {name: page, on: alarm, action: call, group_by: [rule], group_wait: 30s}\n"

    def test_a_run_ends_when_all_its_alarms_have_ended(self) -> None:
        """Acknowledging the first of three alarms ended the escalation of all."""
        world = simulate(HOT % "" + self.CALL % "x" + self.BY_RULE)
        give(world, (0, "p1", 60), (0, "p2", 60), (0, "p3", 60), (7, "p3", 40))
        world.at(minutes(2), "acknowledge", rule="hot", owner="p1", who="ann")
        world.at(minutes(9), "acknowledge", rule="hot", owner="p2", who="ann")
        world.run_until(minutes(60))
        assert logged(world, "run")[-1] == (9, "call", "cancelled")

    @pytest.mark.parametrize("who", ["p1", "p2"])
    def test_it_does_not_matter_which_alarm_ends_first(self, who: str) -> None:
        world = simulate(HOT % "" + self.CALL % "x" + self.BY_RULE)
        give(world, (0, "p1", 60), (0, "p2", 60))
        world.at(minutes(2), "acknowledge", rule="hot", owner=who, who="ann")
        world.run_until(minutes(60))
        assert logged(world, "run")[-1] == (10.5, "call", "completed")

    def test_templates_see_every_alarm_as_it_is_now(self) -> None:
        text = "{% for one in alarms %}{{ one.owner }} {{ one.state }} {% endfor %}"
        world = simulate(HOT % "" + self.CALL % text + self.BY_RULE)
        give(world, (0, "p1", 60), (0, "p2", 60), (5, "p2", 40))
        world.run_until(minutes(60))
        assert [entry.details["text"] for entry in world.log if "text" in entry.details] == [
            "p1 open p2 resolved "
        ]

    def test_the_default_message_of_a_group_lists_all_alarms(self) -> None:
        """It spoke of the first alarm only."""
        world = simulate(
            HOT % "" + OPS % "" + "---\naction: {name: call, channel: {name: ops}}\n" + self.BY_RULE
        )
        give(world, (0, "p1", 60), (0.1, "p2", 60))
        world.run_until(minutes(60))
        (entry,) = [entry for entry in world.log if entry.kind == "step" and entry.state == "completed"]
        assert entry.details["subject"] == "[HIGH] 2 open: hot"
        assert "p1" in entry.details["text"]
        assert "p2" in entry.details["text"]

    def test_a_flapping_alarm_in_front_does_not_swallow_the_page_about_another(self) -> None:
        """The first alarm ends while the group gathers."""
        world = simulate(
            HOT
            % ""
            + '---\naction: {name: call, publish: {subject: pager, payload: {text: "{{ events | length }} hot:'
            " {{ events | map(attribute='owner') | join(', ') }}\"}}}\n" + self.BY_RULE
        )
        give(world, (0, "dev-01", 85), (1 / 6, "dev-01", 40), (1 / 12, "dev-02", 90))
        world.run_until(minutes(20))
        assert [
            entry.details["payload"]["text"]
            for entry in world.log
            if entry.kind == "step" and entry.state == "completed"
        ] == ["2 hot: dev-01, dev-02"]


class TestOverlapAndLimits:
    SLOW = "---\naction: {name: tell, steps: [wait: {for: 10m}, log: {message: '{{ events | length }} events'}]}\n"
    RULE = "---\naction_rule: {name: each, on: event, when: 'type == \"noted\"', action: tell%s}\n"

    def texts(self, world: World) -> list[tuple[float, str]]:
        return [
            ((entry.at - START) / timedelta(minutes=1), entry.details["text"])
            for entry in world.log
            if entry.kind == "step" and "text" in entry.details
        ]

    def test_a_group_waits_for_the_run_before_it_and_goes_on_gathering(self) -> None:
        """`overlap: queue` had no effect beside `group_wait`."""
        world = simulate(self.SLOW + self.RULE % ", group_wait: 30s, overlap: queue")
        for minute in (0, 2, 3, 4):
            world.at(minutes(minute), "emit", type="noted")
        world.run_until(minutes(60))
        assert self.texts(world) == [(10.5, "1 events"), (20.5, "3 events")]

    def test_a_group_is_skipped_while_a_run_is_active(self) -> None:
        world = simulate(self.SLOW + self.RULE % ", group_wait: 30s, overlap: skip")
        for minute in (0, 2, 3, 11):
            world.at(minutes(minute), "emit", type="noted")
        world.run_until(minutes(60))
        assert self.texts(world) == [(10.5, "1 events"), (21.5, "1 events")]

    def test_what_a_limit_held_back_is_told_when_the_limit_allows_it(self) -> None:
        """A limit dropped pages for good."""
        world = simulate(
            HOT % ""
            + "---\naction: {name: call, log: {message: \"{{ alarms | map(attribute='owner') | join(', ') }}\"}}\n"
            + "---\naction_rule: {name: page, on: alarm, action: call, rate_limit: {count: 2, per: 1h}}\n"
        )
        give(world, (0, "p1", 60), (1, "p2", 60), (2, "p3", 60), (3, "p4", 60))
        world.run_until(minutes(600))
        assert self.texts(world) == [(0, "p1"), (1, "p2"), (60, "p3, p4")]
