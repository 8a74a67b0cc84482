"""Notifications at real servers that fail, stall and come back: the scenarios of
tests/rules/replay/rule_tests/test_notifications.py with Postgres, the clock, the lane and the performer."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from nats.aio.client import Client

from rules.actions.retry import retry_run
from tests.cdc.published_records import smaller
from tests.records import events
from tests.rules.actions.performed_steps import after_the_effect
from tests.rules.delivery.mail_servers import mail_server
from tests.rules.delivery.receivers import Receiver, in_turn, receiver, reset_connection, respond, stall
from tests.rules.instance import START, Instance
from tests.sql import all_rows
from tocsin.core.audit import Actor
from tocsin.core.db import Connection
from tocsin.core.settings import Settings


@pytest.fixture
async def instance(settings: Settings, connection: Connection, bus: Client) -> Instance:
    return await Instance.open(smaller(settings, egress_allow="127.0.0.1"), connection, bus)


def channel(server: Receiver, name: str = "ops", keys: str = "") -> str:
    retry = "retry: {initial_interval: 10s, jitter: 0}"
    return (
        f'---\nchannel: {{name: {name}, webhook: {{url: "http://127.0.0.1:{server.port}/x", timeout: 1s}},'
        f" {retry}{keys}}}\n"
    )


def hot(keys: str = "") -> str:
    return f"event_rule: {{name: hot, datapoint: t, above: 5, notify: [ops]{keys}}}\n"


def grouped(keys: str = "") -> str:
    return (
        "event_rule: {name: hot, datapoint: t, above: 5}\n---\n"
        f"action_rule: {{name: page, on: alarm, notify: [ops], group_by: [labels.site], group_wait: 30s{keys}}}\n"
    )


def types(server: Receiver) -> list[str]:
    return [request.json["type"] for request in server.requests]


def states(server: Receiver) -> list[dict[str, str]]:
    """The states of the alarms in each message about a group."""
    return [
        {alarm["owner"]: alarm["type"].removeprefix("alarm-") for alarm in request.json["alarms"]}
        for request in server.requests
    ]


async def run(instance: Instance, rule: str = "notify:hot:ops") -> dict[str, Any]:
    (row,) = await all_rows(
        instance.connection, "select * from tocsin.action where action_rule = %s", (rule,)
    )
    return row


async def test_a_channel_learns_that_an_alarm_opened_and_resolved(instance: Instance) -> None:
    async with receiver(respond()) as server:
        await instance.rules(hot() + channel(server))
        alarm = await instance.alarm()
        assert types(server) == ["alarm-opened"]
        await instance.resolve(alarm)
    assert types(server) == ["alarm-opened", "alarm-resolved"]
    assert len({request.headers["webhook-id"] for request in server.requests}) == 2
    row = await run(instance)
    assert (row["state"], row["group_key"], row["failing_since"]) == ("completed", str(alarm), None)
    assert await instance.timers() == 0


async def test_opened_is_never_delivered_after_resolved(instance: Instance) -> None:
    async with receiver(in_turn(respond(503), respond(503), respond())) as server:
        await instance.rules(hot() + channel(server))
        alarm = await instance.alarm()
        await instance.pass_time("15s")
        assert len(server.requests) == 2
        await instance.resolve(alarm)
        await instance.pass_time("1h")
    assert len(server.requests) == 2, "the channel never learnt of the alarm, so nothing follows"
    row = await run(instance)
    assert (row["state"], row["result"]["reason"]) == ("completed", "resolved before it was delivered")


@pytest.mark.parametrize("fault", [respond(503), stall, reset_connection, respond(404)])
async def test_a_notification_is_retried_for_hours_with_one_idempotency_key(
    instance: Instance, fault: Any
) -> None:
    async with receiver(in_turn(*[fault] * 12, respond())) as server:
        await instance.rules(hot() + channel(server))
        await instance.alarm()
        await instance.pass_time("30s")
        assert (await run(instance))["failing_since"] == START
        await instance.pass_time("2h")
    assert len(server.requests) == 13
    assert len({request.headers["webhook-id"] for request in server.requests}) == 1
    row = await run(instance)
    assert (row["state"], row["failing_since"], row["active"]["0"]["rest"]) == ("running", None, "idle")


async def test_a_target_that_is_down_and_comes_back_gets_the_current_state(instance: Instance) -> None:
    async with receiver(respond()) as server:
        await instance.rules(hot() + channel(server))
        alarm = await instance.alarm()
        port = server.port
    await instance.resolve(alarm)
    await instance.pass_time("20m")
    assert (await run(instance))["failing_since"] is not None
    async with receiver(respond(), port=port) as again:
        await instance.pass_time("5m")
    assert types(again) == ["alarm-resolved"]
    assert (await run(instance))["state"] == "completed"


async def test_giving_up_is_an_event_and_an_operator_can_retry(instance: Instance) -> None:
    async with receiver(respond(503)) as server:
        await instance.rules(hot() + channel(server, keys=", give_up_after: 1h"))
        alarm = await instance.alarm()
        await instance.pass_time("2h")
        row = await run(instance)
        assert row["state"] == "failed"
        assert row["failing_since"] == START
        assert row["error"].endswith("answered 503: ok")
        (event,) = [row for row in await events(instance.connection) if row["type"] == "notification-failed"]
        assert (event["origin"], event["rule"], event["alarm_id"]) == ("derived", "hot", alarm)
        assert event["payload"]["channel"] == "ops"
        server.behaviour = respond()
        await retry_run(instance.connection, row["id"], Actor("ann", "test", instance.clock.now()))
        await instance.drain()
    assert types(server)[-1] == "alarm-opened"
    assert (await run(instance))["state"] == "running"


async def test_a_fallback_takes_over_at_once_if_the_failure_is_permanent(instance: Instance) -> None:
    async with receiver(respond(404)) as ops, receiver(respond()) as pager:
        rules = hot() + channel(ops, keys=", fallback: pager") + channel(pager, "pager")
        await instance.rules(rules)
        alarm = await instance.alarm()
        assert types(pager) == ["alarm-opened"]
        await instance.pass_time("7m")
        assert len(ops.requests) == 2, "the channel is tried again every five minutes"
        await instance.resolve(alarm)
    assert types(pager) == ["alarm-opened", "alarm-resolved"]


async def test_mail_is_the_fallback_of_a_webhook_that_fails_for_five_minutes(instance: Instance) -> None:
    async with receiver(respond(503)) as ops, mail_server() as mail:
        email = (
            f"---\nchannel: {{name: mail, email: {{smtp: {{host: 127.0.0.1, port: {mail.port}, security: none}},"
            " from: tocsin@example.com, to: [ops@example.com]}}\n"
        )
        await instance.rules(hot() + channel(ops, keys=", fallback: mail") + email)
        alarm = await instance.alarm()
        await instance.pass_time("4m")
        assert not mail.envelopes
        await instance.pass_time("2m")
        await instance.resolve(alarm)
    contents = [envelope.content for envelope in mail.envelopes]
    lines = [
        line for content in contents if isinstance(content, bytes) for line in content.decode().splitlines()
    ]
    subjects = [line for line in lines if line.startswith("Subject:")]
    assert subjects == ["Subject: [HIGH] hot (plant-7)", "Subject: [RESOLVED] hot (plant-7)"]


RESOLVED = {
    "who": "ann",
    "reason": "operator",
    "note": "sensor broken",
    "message": "plant-7: resolved by ann",
}


async def resolve_as_ann(instance: Instance, alarm: UUID) -> None:
    """The rows of a resolution. No lane has read its event yet."""
    await instance.connection.execute(
        "update tocsin.alarm set state = 'resolved', resolved_at = tocsin.instant() where id = %s", (alarm,)
    )
    await instance.append(
        "alarm-resolved", origin="caused", alarm_id=alarm, rule="hot", owner="plant-7", payload=RESOLVED
    )


async def test_a_message_about_a_resolution_has_its_facts_although_the_lane_is_behind(
    instance: Instance,
) -> None:
    async with receiver(respond()) as server:
        await instance.rules(hot(", repeat: 30m") + channel(server))
        await resolve_as_ann(instance, await instance.alarm())
        await instance.be_at("30m")
        await instance.fire()
        await instance.perform_due()
    assert types(server) == ["alarm-opened", "alarm-resolved"]
    message = server.requests[-1].json
    facts = {"resolved_by": "ann", "note": "sensor broken", "message": "plant-7: resolved by ann"}
    assert {name: message[name] for name in facts} == facts


async def test_the_message_of_a_group_about_a_resolution_has_its_facts(instance: Instance) -> None:
    async with receiver(respond()) as server:
        await instance.rules(grouped() + channel(server))
        alarm = await instance.alarm(site="ams")
        await instance.pass_time("1m")
        await resolve_as_ann(instance, alarm)
        await instance.drain()
        await instance.pass_time("10m")
    (resolved,) = server.requests[-1].json["alarms"]
    assert (resolved["resolved_by"], resolved["note"]) == ("ann", "sensor broken")
    assert resolved["message"] == "plant-7: resolved by ann"


async def test_it_is_repeated_until_it_is_acknowledged(instance: Instance) -> None:
    async with receiver(respond()) as server:
        await instance.rules(hot(", repeat: 30m") + channel(server))
        alarm = await instance.alarm()
        await instance.pass_time("70m")
        await instance.acknowledge(alarm)
        await instance.pass_time("3h")
    assert types(server) == ["alarm-opened", "alarm-reminder", "alarm-reminder"]
    assert await instance.timers() == 0


async def test_a_group_follows_joins_and_resolutions_and_ends_when_all_are_resolved(
    instance: Instance,
) -> None:
    async with receiver(respond()) as server:
        await instance.rules(grouped() + channel(server))
        first = await instance.alarm(owner="p1", site="fra")
        await instance.pass_time("10s")
        other = await instance.alarm(owner="q1", site="lon")
        second = await instance.alarm(owner="p2", site="fra")
        await instance.pass_time("1m")
        assert states(server) == [{"p1": "opened", "p2": "opened"}, {"q1": "opened"}]
        await instance.resolve(first)
        await instance.pass_time("10m")
        assert states(server)[2:] == [{"p1": "resolved", "p2": "opened"}]
        await instance.resolve(second)
        await instance.resolve(other)
        await instance.pass_time("10m")
    assert states(server)[3:] == [{"p2": "resolved"}, {"q1": "resolved"}]
    rows = await all_rows(instance.connection, "select state from tocsin.action")
    assert [row["state"] for row in rows] == ["completed", "completed"]


async def test_the_others_are_notified_if_the_first_alarm_resolves_during_group_wait(
    instance: Instance,
) -> None:
    async with receiver(respond()) as server:
        await instance.rules(grouped() + channel(server))
        first = await instance.alarm(owner="p1")
        await instance.alarm(owner="p2")
        await instance.resolve(first)
        await instance.pass_time("1m")
    assert states(server) == [{"p2": "opened"}]


async def test_an_alarm_that_joins_while_the_message_is_sent_is_in_the_next(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with receiver(respond()) as server:
        await instance.rules(grouped(", group_interval: 1m") + channel(server))
        await instance.alarm(owner="p1")

        async def join() -> None:
            await instance.open_alarm(owner="p2")
            await instance.read_lane()

        after_the_effect(monkeypatch, "notify", join)
        await instance.pass_time("5m")
    assert states(server) == [{"p1": "opened"}, {"p1": "opened", "p2": "opened"}]


async def test_an_alarm_that_joins_while_the_last_message_is_sent_keeps_the_run(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with receiver(respond()) as server:
        await instance.rules(grouped(", group_interval: 1m") + channel(server))
        alarm = await instance.alarm(owner="p1")
        await instance.pass_time("5m")

        async def join() -> None:
            await instance.open_alarm(owner="p2")
            await instance.read_lane()

        after_the_effect(monkeypatch, "notify", join)
        await instance.resolve(alarm)
        await instance.pass_time("5m")
    assert states(server) == [{"p1": "opened"}, {"p1": "resolved"}, {"p2": "opened"}]
    rows = await all_rows(instance.connection, "select state from tocsin.action")
    assert [row["state"] for row in rows] == ["running"]


async def test_a_snooze_holds_notifications_and_what_is_open_at_its_end_is_notified_once(
    instance: Instance,
) -> None:
    async with receiver(respond()) as server:
        await instance.rules(hot(", repeat: 10m") + channel(server))
        alarm = await instance.alarm()
        await instance.snooze(alarm, "35m")
        row = await run(instance)
        assert row["held_by"] == ["snooze"]
        await instance.pass_time("34m")
        assert types(server) == ["alarm-opened"]
        await instance.pass_time("2m")
    assert types(server) == ["alarm-opened", "alarm-snooze-ended"]
    assert (await run(instance))["held_by"] is None


async def test_a_snooze_holds_the_steps_of_a_runbook(instance: Instance) -> None:
    await instance.runbook("- wait: {for: 10m}\n- log: {message: page}", 'type == "alarm-opened"')
    alarm = await instance.alarm()
    await instance.snooze(alarm, "2h")
    await instance.pass_time("1h")
    row = await instance.action()
    assert (row["state"], row["held_by"]) == ("running", ["snooze"])
    await instance.pass_time("2h")
    assert (await instance.action())["state"] == "completed"
    steps = await all_rows(
        instance.connection, "select result from tocsin.action_step where result ? 'held_by' order by seq"
    )
    assert steps[0]["result"]["reason"].startswith("held by a snooze by ann until")


async def test_a_run_of_a_group_ends_when_all_its_alarms_have_ended(instance: Instance) -> None:
    await instance.rules(
        "action: {name: call, steps: [wait: {for: 1h}, log: {message: page}]}\n---\n"
        "action_rule: {name: page, on: alarm, action: call, group_by: [rule], group_wait: 30s}\n"
    )
    first, second = await instance.alarm(owner="p1"), await instance.alarm(owner="p2")
    await instance.acknowledge(first)
    await instance.pass_time("1m")
    assert (await instance.action())["state"] == "running"
    await instance.resolve(second)
    row = await instance.action()
    assert (row["state"], row["error"]) == ("cancelled", "the alarm resolved")
    assert await instance.timers() == 0


async def test_a_group_waits_for_the_run_before_it_and_goes_on_gathering(instance: Instance) -> None:
    await instance.runbook(
        "- wait: {for: 10m}\n- log: {message: '{{ events | length }} events'}",
        keys="  group_wait: 30s\n  overlap: queue\n",
    )
    await instance.event()
    await instance.pass_time("2m")
    for _ in range(3):
        await instance.event()
        await instance.pass_time("1m")
    rows = await all_rows(instance.connection, "select state from tocsin.action order by event_seq")
    assert [row["state"] for row in rows] == ["running", "queued"]
    await instance.pass_time("1h")
    rows = await all_rows(
        instance.connection,
        "select state, result ->> 'message' as text from tocsin.action order by event_seq",
    )
    assert [(row["state"], row["text"]) for row in rows] == [
        ("completed", "1 events"),
        ("completed", "3 events"),
    ]


async def test_what_a_limit_held_back_begins_when_the_limit_allows_it(instance: Instance) -> None:
    await instance.runbook(
        "- log: {message: '{{ events | length }} events'}", keys="  rate_limit: {count: 2, per: 1h}\n"
    )
    for _ in range(5):
        await instance.event()
    await instance.pass_time("59m")
    rows = await all_rows(instance.connection, "select state from tocsin.action order by event_seq")
    assert [row["state"] for row in rows] == ["completed", "completed", "gathering"]
    await instance.pass_time("2m")
    rows = await all_rows(
        instance.connection, "select result ->> 'message' as text from tocsin.action order by event_seq"
    )
    assert [row["text"] for row in rows] == ["1 events", "1 events", "3 events"]


async def test_a_disabled_channel_waits_and_a_removed_one_ends(instance: Instance) -> None:
    async with receiver(in_turn(respond(503), respond())) as server:
        await instance.rules(hot() + channel(server))
        await instance.alarm()
        await instance.rules(hot() + channel(server, keys=", enabled: false"))
        await instance.pass_time("10m")
        assert len(server.requests) == 1
        await instance.rules(hot() + channel(server))
        await instance.pass_time("10m")
    assert len(server.requests) == 2
