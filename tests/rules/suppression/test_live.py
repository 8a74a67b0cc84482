"""Suppression with Postgres, the clock, the record lane, the performer and a real HTTP server: the
scenarios of test_scenarios.py live."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from nats.aio.client import Client

from rules.actions import hold
from rules.suppression.operator import add_silence, expire_silence
from rules.suppression.silence_store import NewSilence, find_silence, list_silences
from tests.cdc.published_records import smaller
from tests.rules.apply.apply_setup import apply_only, put
from tests.rules.delivery.receivers import Receiver, receiver, respond
from tests.rules.instance import Instance
from tests.sql import all_rows
from tocsin.core.audit import Actor
from tocsin.core.db import Connection
from tocsin.core.settings import Settings

HOUR = timedelta(hours=1)


@pytest.fixture
async def instance(settings: Settings, connection: Connection, bus: Client) -> Instance:
    return await Instance.open(smaller(settings, egress_allow="127.0.0.1"), connection, bus)


def rules(server: Receiver, keys: str = "", more: str = "") -> str:
    return (
        f"event_rule: {{name: hot, datapoint: t, above: 5, notify: [ops]{keys}}}\n---\n"
        "event_rule: {name: switch, datapoint: s, above: 5}\n"
        f'---\nchannel: {{name: ops, webhook: {{url: "http://127.0.0.1:{server.port}/x", timeout: 1s}}}}\n{more}'
    )


INHIBIT = (
    "---\ninhibit: {name: i, source: 'rule == \"switch\"', target: 'rule == \"hot\"', equal: [labels.site]}\n"
)


def types(server: Receiver) -> list[str]:
    return [request.json["type"].removeprefix("alarm-") for request in server.requests]


async def silence(instance: Instance, lasts: timedelta, where: str = "true") -> NewSilence:
    now = instance.clock.now()
    added = NewSilence(where, now, now + lasts, "planned", "ann")
    await add_silence(instance.connection, added, Actor("ann", "test", now))
    await instance.drain()
    return added


async def expire(instance: Instance, silence_id: UUID) -> None:
    row = await find_silence(instance.connection, str(silence_id))
    await expire_silence(instance.connection, row, Actor("bob", "test", instance.clock.now()))
    await instance.drain()


async def test_what_is_open_when_a_silence_ends_is_notified_once(instance: Instance) -> None:
    async with receiver(respond()) as server:
        await instance.rules(rules(server))
        added = await silence(instance, HOUR)
        await instance.alarm(owner="p1")
        over = await instance.alarm(owner="p2")
        await instance.pass_time("30m")
        await instance.resolve(over)
        assert server.requests == []
        held = await all_rows(
            instance.connection, "select held_by from tocsin.action where state = 'running'"
        )
        assert held == [{"held_by": [f"silence:{added.id}"]}]
        await instance.pass_time("40m")
        assert types(server) == ["reminder"]
        await instance.pass_time("5h")
    assert [request.json["owner"] for request in server.requests] == ["p1"]


async def test_the_history_of_a_held_notification_names_the_silence(instance: Instance) -> None:
    async with receiver(respond()) as server:
        await instance.rules(rules(server))
        added = await silence(instance, HOUR)
        await instance.alarm()
        (row,) = await all_rows(
            instance.connection, "select result from tocsin.action_step where state = 'waiting'"
        )
    until = "2026-03-02T09:00:00Z"
    assert row["result"]["reason"] == f"held by silence {str(added.id)[:8]} (planned, ann, until {until})"


async def test_an_idle_notification_is_repeated_when_a_silence_of_its_alarm_ends(instance: Instance) -> None:
    async with receiver(respond()) as server:
        await instance.rules(rules(server))
        await instance.alarm(owner="p1")
        await silence(instance, HOUR, 'owner == "p1"')
        await instance.alarm(owner="p2")
        await instance.pass_time("2h")
    sent = [(request.json["owner"], request.json["type"]) for request in server.requests]
    assert sent == [("p1", "alarm-opened"), ("p2", "alarm-opened"), ("p1", "alarm-reminder")]


async def test_a_silence_that_is_expired_releases_at_once(instance: Instance) -> None:
    async with receiver(respond()) as server:
        await instance.rules(rules(server))
        added = await silence(instance, HOUR)
        await instance.alarm()
        await instance.pass_time("10m")
        await expire(instance, added.id)
        assert types(server) == ["reminder"]
        await instance.pass_time("5h")
    assert len(server.requests) == 1


async def test_a_silence_that_never_began_wakes_nothing(instance: Instance) -> None:
    async with receiver(respond()) as server:
        await instance.rules(rules(server))
        await instance.alarm()
        now = instance.clock.now()
        later = NewSilence("true", now + HOUR, now + 2 * HOUR, "", "ann")
        await add_silence(instance.connection, later, Actor("ann", "test", now))
        await expire(instance, later.id)
    assert types(server) == ["opened"]


async def test_a_silence_holds_a_runbook_and_releases_it(instance: Instance) -> None:
    await instance.runbook("- wait: {for: 10m}\n- log: {message: page}", 'type == "alarm-opened"')
    await instance.alarm()
    await silence(instance, HOUR)
    await instance.pass_time("30m")
    assert (await instance.action())["state"] == "running"
    await instance.pass_time("40m")
    assert (await instance.action())["state"] == "completed"


async def test_an_inhibited_alarm_is_notified_when_its_source_resolves(instance: Instance) -> None:
    async with receiver(respond()) as server:
        await instance.rules(rules(server, more=INHIBIT))
        source = await instance.alarm("switch", "sw", site="ams")
        await instance.alarm("hot", "p1", site="ams")
        await instance.alarm("hot", "p2", site="fra")
        assert [request.json["owner"] for request in server.requests] == ["p2"]
        await instance.pass_time("3h")
        assert len(server.requests) == 1
        await instance.resolve(source)
    assert [request.json["owner"] for request in server.requests] == ["p2", "p1"]


async def test_an_apply_that_removes_an_inhibit_releases_what_it_held(instance: Instance) -> None:
    async with receiver(respond()) as server:
        await instance.rules(rules(server, more=INHIBIT))
        await instance.alarm("switch", "sw", site="ams")
        await instance.alarm("hot", "p1", site="ams")
        assert server.requests == []
        await apply_only(instance.connection, rules(server), Actor("ann", "test", instance.clock.now()))
        await instance.drain()
    assert [request.json["owner"] for request in server.requests] == ["p1"]


async def test_windows_of_a_maintenance_follow_each_other(instance: Instance) -> None:
    nightly = "---\nmaintenance: {name: m, where: 'true', cron: '0 9 * * *', duration: 1h}\n"
    async with receiver(respond()) as server:
        await instance.rules(rules(server, more=nightly))
        await instance.pass_time("90m")
        await instance.alarm(owner="p1")
        assert server.requests == []
        await instance.pass_time("1h")
        assert types(server) == ["reminder"]
        await instance.pass_time("24h")
        await instance.alarm(owner="p2")
        (window,) = await list_silences(instance.connection)
    assert window["starts_at"].isoformat() == "2026-03-04T09:00:00+00:00"
    # The second window reminded of p1, and p2 opened outside of windows.
    sent = [(request.json["owner"], request.json["type"]) for request in server.requests]
    assert sent == [("p1", "alarm-reminder"), ("p1", "alarm-reminder"), ("p2", "alarm-opened")]


async def test_a_step_that_misses_the_end_of_its_silence_is_released_soon(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The silence ends, and the lane reads the end, between the look at the silences and the commit."""
    read = hold.read_suppressions
    ended = False

    async def end_in_between(*arguments: Any) -> Any:
        nonlocal ended
        found = await read(*arguments)
        if found and not ended:
            ended = True
            await expire_silence(
                instance.connection,
                await find_silence(instance.connection, str(added.id)),
                Actor("bob", "test", instance.clock.now()),
            )
            await instance.read_lane()
        return found

    monkeypatch.setattr("rules.actions.performer.read_suppressions", end_in_between)
    await instance.runbook("- log: {message: page}", 'type == "alarm-opened"')
    added = await silence(instance, HOUR)
    await instance.alarm()
    assert (await instance.action())["state"] == "running"
    await instance.pass_time("3h")
    assert (await instance.action())["state"] == "completed"


async def test_stale_alarms_are_silenced_like_others(instance: Instance) -> None:
    async with receiver(respond()) as server:
        stale = "---\ndatapoint_type: {name: temp, key: temp, interval: 1m, on_stale: alarm, notify: [ops]}\n"
        await instance.rules(rules(server, more=stale))
        await silence(instance, HOUR, 'rule == "stale:temp" && labels.site == "ams"')
        await instance.alarm("stale:temp", "p1", site="ams")
        await instance.alarm("stale:temp", "p2", site="fra")
        assert [request.json["owner"] for request in server.requests] == ["p2"]
        await instance.pass_time("61m")
    assert [request.json["owner"] for request in server.requests] == ["p2", "p1"]


async def test_the_same_rules_again_do_not_disturb_a_window(instance: Instance) -> None:
    window = "---\nmaintenance: {name: m, where: 'true', at: '2026-03-02T08:30:00Z', duration: 1h}\n"
    async with receiver(respond()) as server:
        await instance.rules(rules(server, more=window))
        before = await list_silences(instance.connection)
        await put(instance.connection, rules(server, more=window), Actor("ann", "test", instance.clock.now()))
        assert await list_silences(instance.connection) == before
