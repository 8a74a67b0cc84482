"""An operator resolves an alarm at one place of its lane, and the rule opens another one only after it was clear."""

from __future__ import annotations

from typing import Any

import pytest

from rules.alarms.queries import list_alarms
from rules.alarms.resolve import resolve
from tests.clock.clock_setup import at
from tests.records import events
from tests.rules.alarms.alarm_batches import arrival
from tests.rules.alarms.series import Live
from tests.rules.apply.apply_setup import put
from tests.sessions import Sessions
from tests.sql import all_rows
from tocsin.core.audit import Actor
from tocsin.core.db import Connection
from tocsin.core.errors import Refused

RULES = """
event_rule: {name: hot, datapoint: dsp.*, above: 65, keep_firing_for: 20s}
---
event_rule: {name: slow, datapoint: dsp.*, above: 65, for: 60s}
"""


@pytest.fixture
async def live(connection: Connection, sessions: Sessions) -> Live:
    live = Live(connection, await sessions("clock"))
    await live.begin()
    await put(connection, RULES)
    return live


async def open_alarm(connection: Connection) -> dict[str, Any]:
    (alarm,) = await list_alarms(connection, states=["open"])
    return alarm


async def test_a_resolved_alarm_has_an_event_an_audit_row_and_no_timer(
    connection: Connection, live: Live
) -> None:
    await live.receive([arrival(10, 70), arrival(11, 60)])
    alarm = await open_alarm(connection)
    result = await resolve(connection, alarm, Actor("bob", "test", at(15)), "the host is gone")
    assert result.changed
    event = (await events(connection))[-1]
    assert (event["seq"], event["type"], event["origin"]) == (result.seq, "alarm-resolved", "caused")
    payload = event["payload"]
    assert (payload["reason"], payload["who"], payload["note"]) == ("operator", "bob", "the host is gone")
    assert payload["position"]["watermark"] == at(11).isoformat()
    assert payload["labels"] == {}
    (row,) = await all_rows(connection, "select * from tocsin.alarm where id = %s", [alarm["id"]])
    assert (row["state"], row["resolved_at"], row["resolved_reason"]) == ("resolved", at(15), "operator")
    (audited,) = await all_rows(connection, "select who, name from tocsin.audit where verb = 'resolve'")
    assert audited == {"who": "bob", "name": "hot"}
    timers = await all_rows(connection, "select ref from tocsin.timer where key = 'clear'")
    assert timers == []


async def test_it_opens_again_after_it_was_clear(connection: Connection, live: Live) -> None:
    await live.receive([arrival(10, 70)])
    alarm = await open_alarm(connection)
    await resolve(connection, alarm, Actor("bob", "test", at(15)))
    await live.receive([arrival(20, 71)])
    assert await list_alarms(connection, states=["open"]) == []
    await live.receive([arrival(21, 60), arrival(22, 70)])
    assert (await open_alarm(connection))["since"] == at(22)


async def test_only_an_open_alarm_can_be_resolved(connection: Connection, live: Live) -> None:
    await live.receive([arrival(10, 70)])
    alarm = await open_alarm(connection)
    await resolve(connection, alarm, Actor("bob", "test", at(15)))
    with pytest.raises(Refused, match="is resolved"):
        await resolve(connection, alarm, Actor("ann", "test", at(16)))
    (pending,) = await list_alarms(connection, states=["pending"])
    with pytest.raises(Refused, match="is pending"):
        await resolve(connection, pending, Actor("ann", "test", at(16)))
