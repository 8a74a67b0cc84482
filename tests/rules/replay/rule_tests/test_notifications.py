"""What reaches the people behind a channel, in virtual time: order, retries, reminders, fallbacks, groups,
snoozes, and runs of actions that know all their alarms.

Each scenario lists what was delivered and when. `tests/rules/actions/test_notify_live.py` has the same
scenarios with real servers.
"""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

from rules.replay.rule_tests import World
from tests.paths import ROOT
from tests.rules.replay.rule_tests.worlds import START, give, logged, minutes, simulate

HOT = "event_rule: {name: hot, datapoint: temp, above: 50, severity: high%s}\n"
OPS = "---\nchannel: {name: ops, webhook: {url: 'https://hooks.example.com/1'}%s}\n"
PAGER = "---\nchannel: {name: pager, webhook: {url: 'https://pager.example.com/1'}}\n"
NOTIFY = ", notify: [ops]"
EXACT = ", retry: {initial_interval: 10s, jitter: 0}"
BY_SITE = (
    "---\naction_rule: {name: page, on: alarm, notify: [ops], group_by: [labels.site], group_wait: 30s,"
    " group_interval: 5m%s}\n"
)


def delivered(world: World) -> list[tuple[float, str]]:
    """The minute and the subject of each message that a channel received."""
    return [
        (round((entry.at - START) / timedelta(minutes=1), 2), entry.details["subject"])
        for entry in world.log
        if entry.kind == "step" and entry.state == "completed" and entry.details["step_kind"] == "notify"
    ]


def attempts(world: World) -> list[tuple[float, str]]:
    return [
        (round((entry.at - START) / timedelta(minutes=1), 2), entry.state)
        for entry in world.log
        if entry.kind == "step" and entry.details["step_kind"] == "notify" and entry.state != "held"
    ]


def sent_to(world: World) -> list[tuple[float, str]]:
    return [(at, name) for at, name, state in logged(world, "step") if state == "completed"]


class TestOneAlarm:
    def test_a_channel_learns_that_an_alarm_opened_and_resolved(self) -> None:
        world = simulate(HOT % NOTIFY + OPS % "")
        give(world, (0, "p1", 60), (10, "p1", 40))
        world.run_until(minutes(60))
        assert delivered(world) == [(0, "[HIGH] hot (p1)"), (10, "[RESOLVED] hot (p1)")]
        assert logged(world, "run") == [(0, "notify-ops", "running"), (10, "notify-ops", "completed")]

    def test_opened_is_never_delivered_after_resolved(self) -> None:
        """Each transition was a run with retries of its own, and the late `opened` was the last word."""
        world = simulate(HOT % NOTIFY + OPS % EXACT)
        world.fail("notify-ops", times=2)
        give(world, (0, "p1", 60), (1 / 3, "p1", 40))
        world.run_until(minutes(60))
        assert delivered(world) == []
        assert logged(world, "run")[-1] == (1 / 3, "notify-ops", "completed")

    def test_a_resolution_is_retried_if_the_channel_knows_the_alarm(self) -> None:
        world = simulate(HOT % NOTIFY + OPS % EXACT)
        give(world, (0, "p1", 60), (10, "p1", 40))
        world.at(minutes(5), "fail", action="notify-ops", times=2)
        world.run_until(minutes(60))
        assert delivered(world) == [(0, "[HIGH] hot (p1)"), (10.5, "[RESOLVED] hot (p1)")]

    def test_a_notification_is_retried_until_its_target_is_back(self) -> None:
        """It was given up after two minutes, while the alarm stayed open."""
        world = simulate(HOT % NOTIFY + OPS % EXACT)
        world.fail("notify-ops", times=20)
        give(world, (0, "p1", 60))
        world.run_until(minutes(180))
        assert [at for at, state in attempts(world)][:7] == [0, 0.17, 0.5, 1.17, 2.5, 5.17, 10.17]
        gaps = [later - earlier for (earlier, _), (later, _) in pairwise(attempts(world)[6:])]
        assert set(map(round, gaps)) == {5}, "at most five minutes between two attempts"
        assert delivered(world) == [(80.17, "[HIGH] hot (p1)")]

    def test_a_notification_that_is_given_up_is_an_event(self) -> None:
        world = simulate(HOT % NOTIFY + OPS % ", give_up_after: 2h")
        world.fail("notify-ops", times=1_000)
        give(world, (0, "p1", 60))
        world.run_until(minutes(300))
        (event,) = [
            entry for entry in world.log if entry.kind == "event" and entry.name == "notification-failed"
        ]
        assert 120 <= (event.at - START) / timedelta(minutes=1) <= 125
        assert (event.state, event.details["payload"]["channel"]) == ("derived", "ops")
        assert logged(world, "run")[-1][1:] == ("notify-ops", "failed")

    def test_an_action_rule_can_react_to_a_notification_that_is_given_up(self) -> None:
        world = simulate(
            HOT % NOTIFY
            + OPS % ", give_up_after: 1m"
            + "---\naction: {name: shout, log: {message: '{{ payload.channel }} is dead'}}\n"
            "---\naction_rule: {name: dead, on: event, when: 'type == \"notification-failed\"', action: shout}\n"
        )
        world.fail("notify-ops", times=1_000)
        give(world, (0, "p1", 60))
        world.run_until(minutes(30))
        assert [
            entry.details["text"] for entry in world.log if entry.name == "shout" and entry.kind == "step"
        ] == ["ops is dead"]

    def test_it_is_repeated_until_it_is_acknowledged(self) -> None:
        world = simulate(HOT % ", notify: [ops], repeat: 30m" + OPS % "")
        give(world, (0, "p1", 60), (200, "p1", 40))
        world.at(minutes(70), "acknowledge", rule="hot", owner="p1", who="ann")
        world.run_until(minutes(300))
        assert delivered(world) == [
            (0, "[HIGH] hot (p1)"),
            (30, "[HIGH still open] hot (p1)"),
            (60, "[HIGH still open] hot (p1)"),
            (200, "[RESOLVED] hot (p1)"),
        ]

    def test_a_repetition_counts_from_the_last_delivery(self) -> None:
        world = simulate(HOT % ", notify: [ops], repeat: 30m" + OPS % EXACT)
        world.fail("notify-ops", times=3)
        give(world, (0, "p1", 60))
        world.run_until(minutes(40))
        assert [at for at, _ in delivered(world)] == [1.17, 31.17]

    def test_a_stale_alarm_is_notified_and_repeated_like_any_other(self) -> None:
        world = simulate(
            "datapoint_type: {name: temp, key: temp, interval: 1m, on_stale: alarm, notify: [ops], repeat: 1h}\n"
            + OPS % ""
        )
        give(world, (0, "p1", 20), (100, "p1", 20))
        world.run_until(minutes(101))
        assert [at for at, _ in delivered(world)] == [2.5, 62.5, 100]

    def test_a_channel_that_does_not_want_resolutions_gets_none(self) -> None:
        world = simulate(HOT % NOTIFY + OPS % ", send_resolved: false")
        give(world, (0, "p1", 60), (10, "p1", 40))
        world.run_until(minutes(60))
        assert delivered(world) == [(0, "[HIGH] hot (p1)")]
        assert logged(world, "run")[-1] == (10, "notify-ops", "completed")


class TestFallback:
    RULES = HOT % NOTIFY + OPS % (EXACT + ", fallback: pager") + PAGER

    def test_it_takes_over_after_five_minutes_and_learns_how_it_ends(self) -> None:
        world = simulate(self.RULES)
        world.fail("notify-ops", times=1_000)
        give(world, (0, "p1", 60), (60, "p1", 40))
        world.run_until(minutes(90))
        assert sent_to(world) == [(5, "notify-pager"), (60, "notify-pager")]
        assert [subject for _, subject in delivered(world)] == ["[HIGH] hot (p1)", "[RESOLVED] hot (p1)"]

    def test_it_is_not_used_for_a_failure_that_passes(self) -> None:
        world = simulate(self.RULES)
        world.fail("notify-ops", times=3)
        give(world, (0, "p1", 60))
        world.run_until(minutes(30))
        assert sent_to(world) == [(1 + 1 / 6, "notify-ops")]

    def test_both_learn_of_the_resolution_if_the_channel_comes_back(self) -> None:
        world = simulate(self.RULES)
        world.fail("notify-ops", times=7)
        give(world, (0, "p1", 60), (60, "p1", 40))
        world.run_until(minutes(90))
        assert [name for _, name in sent_to(world)] == [
            "notify-pager",
            "notify-ops",
            "notify-ops",
            "notify-pager",
        ]

    def test_a_fallback_that_fails_too_is_retried(self) -> None:
        world = simulate(self.RULES)
        world.fail("notify-ops", times=1_000)
        world.fail("notify-pager", times=2)
        give(world, (0, "p1", 60))
        world.run_until(minutes(60))
        (at, name) = sent_to(world)[0]
        assert name == "notify-pager"
        assert 5 < at < 6

    def test_after_the_channel_is_given_up_the_fallback_still_learns_how_it_ends(self) -> None:
        world = simulate(self.RULES.replace("fallback: pager", "fallback: pager, give_up_after: 30m"))
        world.fail("notify-ops", times=1_000)
        give(world, (0, "p1", 60), (120, "p1", 40))
        world.run_until(minutes(150))
        assert sent_to(world) == [(5, "notify-pager"), (120, "notify-pager")]
        assert logged(world, "run")[-1] == (120, "notify-ops", "failed")


class TestGroup:
    RULES = HOT % "" + OPS % "" + BY_SITE % ""

    def test_the_alarms_of_a_site_are_one_message(self) -> None:
        world = simulate(self.RULES)
        give(world, (0, "p1", 60), (0.2, "p2", 60), site="fra")
        give(world, (0.1, "q1", 60), site="lon")
        world.run_until(minutes(60))
        assert delivered(world) == [
            (0.5, "[HIGH] 2 open: hot (site fra)"),
            (0.6, "[HIGH] hot (q1)"),
        ]

    def test_a_group_follows_joins_and_resolutions_and_ends_when_all_are_resolved(self) -> None:
        world = simulate(self.RULES)
        give(
            world,
            (0, "p1", 60),
            (0.2, "p2", 60),
            (1, "p3", 60),
            (8, "p1", 40),
            (20, "p2", 40),
            (20, "p3", 40),
        )
        world.run_until(minutes(60))
        assert delivered(world) == [
            (0.5, "[HIGH] 2 open: hot"),
            (5.5, "[HIGH changed] 3 open: hot"),
            (10.5, "[HIGH changed] 2 open, 1 resolved: hot"),
            (20, "[RESOLVED] all 2 alarms: hot"),
        ]
        assert logged(world, "run")[-1] == (20, "notify-ops", "completed")

    def test_the_others_are_notified_if_the_first_alarm_resolves_during_group_wait(self) -> None:
        """The group was cancelled with its first alarm."""
        world = simulate(
            HOT % ""
            + "---\nevent_rule: {name: full, datapoint: disk, above: 90, severity: high}\n"
            + OPS % ""
            + "---\naction_rule: {name: page, on: alarm, notify: [ops], group_by: [owner]}\n"
        )
        give(world, (0, "p1", 60), (1 / 6, "p1", 40))
        give(world, (1 / 12, "p1", 95), key="disk")
        world.run_until(minutes(60))
        assert delivered(world) == [(0.5, "[HIGH] full (p1)")]

    def test_a_group_whose_alarms_resolve_before_its_first_message_sends_nothing(self) -> None:
        world = simulate(self.RULES)
        give(world, (0, "p1", 60), (0.2, "p2", 60), (0.3, "p1", 40), (0.3, "p2", 40))
        world.run_until(minutes(60))
        assert delivered(world) == []
        assert logged(world, "run")[-1] == (0.5, "notify-ops", "completed")

    def test_a_group_repeats_until_every_alarm_is_acknowledged(self) -> None:
        world = simulate(HOT % "" + OPS % "" + BY_SITE % ", repeat: 20m")
        give(world, (0, "p1", 60), (0.1, "p2", 60))
        world.at(minutes(10), "acknowledge", rule="hot", owner="p1", who="ann")
        world.at(minutes(30), "acknowledge", rule="hot", owner="p2", who="ann")
        world.run_until(minutes(120))
        assert delivered(world) == [(0.5, "[HIGH] 2 open: hot"), (20.5, "[HIGH still open] 2 open: hot")]

    def test_an_alarm_that_opens_and_resolves_between_two_messages_is_not_mentioned(self) -> None:
        world = simulate(self.RULES)
        give(world, (0, "p1", 60), (1, "p2", 60), (2, "p2", 40))
        world.run_until(minutes(60))
        assert delivered(world) == [(0.5, "[HIGH] hot (p1)")]

    def test_a_group_that_ended_begins_again(self) -> None:
        world = simulate(self.RULES)
        give(world, (0, "p1", 60), (10, "p1", 40), (12, "p2", 60))
        world.run_until(minutes(60))
        assert [at for at, _ in delivered(world)] == [0.5, 10, 12.5]


class TestSnooze:
    def test_it_holds_a_repetition_and_the_alarm_is_notified_at_its_end(self) -> None:
        """A snooze silenced nothing."""
        world = simulate(HOT % ", notify: [ops], repeat: 10m" + OPS % "")
        give(world, (0, "p1", 60))
        world.at(minutes(5), "snooze", rule="hot", owner="p1", who="ann", lasts=timedelta(minutes=30))
        world.run_until(minutes(40))
        assert delivered(world) == [(0, "[HIGH] hot (p1)"), (35, "[HIGH snooze ended] hot (p1)")]

    def test_a_snoozed_alarm_that_resolves_is_reported_as_resolved(self) -> None:
        world = simulate(HOT % NOTIFY + OPS % "")
        give(world, (0, "p1", 60), (10, "p1", 40))
        world.at(minutes(5), "snooze", rule="hot", owner="p1", who="ann", lasts=timedelta(minutes=30))
        world.run_until(minutes(60))
        assert delivered(world) == [(0, "[HIGH] hot (p1)"), (10, "[RESOLVED] hot (p1)")]

    def test_a_group_goes_on_with_its_other_alarms(self) -> None:
        world = simulate(HOT % "" + OPS % "" + BY_SITE % ", repeat: 10m")
        give(world, (0, "p1", 60), (0, "p2", 60))
        world.at(minutes(5), "snooze", rule="hot", owner="p1", who="ann", lasts=timedelta(minutes=30))
        world.run_until(minutes(36))
        subjects = [subject for _, subject in delivered(world)]
        assert subjects[:2] == ["[HIGH] 2 open: hot", "[HIGH still open] hot (p2)"]
        assert (35, "[HIGH snooze ended] 2 open: hot") in delivered(world)

    def test_the_steps_of_a_run_wait_for_its_end(self) -> None:
        world = simulate(
            HOT % ""
            + "---\naction: {name: call, steps: [wait: {for: 10m}, log: {message: page}]}\n"
            + "---\naction_rule: {name: page, on: alarm, action: call}\n"
        )
        give(world, (0, "p1", 60))
        world.at(minutes(5), "snooze", rule="hot", owner="p1", who="ann", lasts=timedelta(hours=2))
        world.run_until(minutes(180))
        assert [
            at for at, name, state in logged(world, "step") if (name, state) == ("call", "completed")
        ] == [125, 125]


class TestFiftyDevicesOnFiveSites:
    """examples/sites.yaml, with every device of every site."""

    SITES = ("ams", "fra", "lon", "nyc", "sin")

    def devices(self) -> list[tuple[str, str]]:
        return [(f"{site}-{number}", site) for site in self.SITES for number in range(10)]

    def world(self) -> World:
        return simulate((ROOT / "examples" / "sites.yaml").read_text(encoding="utf-8"))

    def test_each_site_is_one_message_when_they_open_and_one_when_they_resolve(self) -> None:
        world = self.world()
        for owner, site in self.devices():
            values = [(minute, owner, 90.0 if minute < 20 else 60.0) for minute in range(25)]
            give(world, *values, key="device.temperature", site=site)
        world.run_until(minutes(24.5))
        opened, resolved = delivered(world)[:5], delivered(world)[5:]
        assert [at for at, _ in opened] == [2.5] * 5
        assert all("10 open" in subject for _, subject in opened)
        assert [at for at, _ in resolved] == [20] * 5
        assert all("RESOLVED" in subject for _, subject in resolved)

    def test_a_site_that_is_acknowledged_is_not_repeated_and_the_others_are(self) -> None:
        world = self.world()
        for owner, site in self.devices():
            values = [(minute, owner, 90.0) for minute in range(90)]
            give(world, *values, key="device.temperature", site=site)
            if site == "ams":
                world.at(minutes(10), "acknowledge", rule="device-hot", owner=owner, who="ann")
        world.run_until(minutes(89.5))
        repeated = [subject for at, subject in delivered(world) if at == 62.5]
        assert len(repeated) == 4
        assert not any("ams" in subject for subject in repeated)
