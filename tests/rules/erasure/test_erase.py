"""Erasing the data of an owner, statement by statement, and continuing after an interruption."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

import psycopg
import pytest
from nats.js.client import JetStreamContext

from rules.erasure.active import find_active
from rules.erasure.erase import begin_or_continue, erase
from tests.clock.retention.old_rows import put_alarm, put_rule_state, put_run, put_series
from tests.rules.lanes.lane_setup import jetstream
from tests.sql import all_rows, one_row
from tocsin.core.audit import Actor, record_audit
from tocsin.core.audit_chain import verify_chain
from tocsin.core.db import Connection
from tocsin.core.errors import Refused
from tocsin.core.record_log import append_events
from tocsin.core.records import NewEvent
from tocsin.core.settings import Settings

NOW = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
ACTOR = Actor("ann", "test", NOW)


async def append(connection: Connection, owner: str = "ada") -> int:
    return await append_events(connection, [NewEvent(NOW, "external", "noted", {"name": "Ada"}, owner=owner)])


async def erased(connection: Connection, settings: Settings, owner: str = "ada") -> dict[str, int]:
    async with jetstream(settings) as js:
        erasure = await begin_or_continue(connection, owner, ACTOR)
        return await erase(connection, js, settings, owner, erasure, ACTOR, lambda *_: None)


async def test_an_interrupted_erasure_is_continued_up_to_its_own_event(
    settings: Settings, connection: Connection
) -> None:
    await append(connection)
    first = await begin_or_continue(connection, "ada", ACTOR)
    later = await append(connection)
    with pytest.raises(AttributeError):
        await erase(connection, cast(JetStreamContext, None), settings, "ada", first, ACTOR, lambda *_: None)
    assert await begin_or_continue(connection, "ada", ACTOR) == first
    await erased(connection, settings)
    rows = await all_rows(
        connection, "select seq, payload from tocsin.event where type = 'noted' order by seq"
    )
    assert [row["payload"] for row in rows] == [{}, {"name": "Ada"}]
    assert rows[-1]["seq"] == later
    assert (await begin_or_continue(connection, "ada", ACTOR)).seq > later


async def test_kept_events_lose_their_contents(settings: Settings, connection: Connection) -> None:
    await append(connection)
    await append(connection, "bob")
    await connection.execute("insert into tocsin.event_kept select * from tocsin.event")
    assert (await erased(connection, settings))["kept events"] == 1
    rows = await all_rows(connection, "select owner, payload from tocsin.event_kept order by seq")
    assert [(row["owner"], row["payload"]) for row in rows] == [("ada", {}), ("bob", {"name": "Ada"})]


async def test_a_dead_run_cannot_be_retried_without_its_event(
    settings: Settings, connection: Connection
) -> None:
    run = await put_run(connection, "failed", seq=1)
    await connection.execute("update tocsin.action set owner = 'ada', error = 'Ada' where id = %s", (run,))
    await erased(connection, settings)
    row = await one_row(connection, "select state, error from tocsin.action where id = %s", (run,))
    assert row == {"state": "cancelled", "error": None}


async def test_what_is_active_is_found_and_stays(settings: Settings, connection: Connection) -> None:
    await put_series(connection, "ada", "dsp.a", NOW)
    await connection.execute(
        "insert into tocsin.timer (kind, ref, key, fire_at, nominal_at, payload)"
        " values ('watchdog', 'ada', 'dsp.a', %(at)s, %(at)s, '{\"owner\": \"ada\", \"within_us\": 1}')",
        {"at": NOW},
    )
    await put_alarm(connection, "hot", state="open", owner="ada")
    await put_rule_state(connection, "hot", "ada", phase="open")
    found = {items.kind: items.number for items in await find_active(connection, "ada")}
    assert found == {"alarm": 1, "series": 1}
    counts = await erased(connection, settings)
    assert (counts["series"], counts["rule states"], counts["alarms"]) == (0, 0, 0)
    assert await find_active(connection, "bob") == []


async def test_nothing_is_erased_before_workers_have_read_the_log(
    settings: Settings, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rules.erasure.erase._PATIENCE_S", 0.0)
    await connection.execute(
        "insert into tocsin.lane_partition (lane, partition, last_seq) values ('record', 0, 0)"
    )
    await append(connection)
    with pytest.raises(Refused, match="has read up to 0, not to 2 yet"):
        await erased(connection, settings)
    assert (await one_row(connection, "select payload from tocsin.event where seq = 1"))["payload"]


async def test_the_audit_still_shows_other_changes(settings: Settings, connection: Connection) -> None:
    for owner in ("ada", "bob"):
        await record_audit(connection, ACTOR, "add", "schedule", "later", owner=owner, new={"name": "Ada"})
    await erased(connection, settings)
    rows = await all_rows(
        connection, "select owner, kind, new from tocsin.audit where owner = 'ada' order by id"
    )
    assert [(row["kind"], row["new"] is None) for row in rows][:2] == [("schedule", True), ("owner", True)]
    assert (await verify_chain(connection)).problems == []
    await connection.execute(
        "update tocsin.audit set verb = 'forged' where owner = 'ada' and kind = 'schedule'"
    )
    assert len((await verify_chain(connection)).problems) == 1


async def test_only_the_owner_of_the_schema_can_erase(settings: Settings, connection: Connection) -> None:
    seq = await append(connection)
    with pytest.raises(psycopg.DatabaseError, match="is not an event owner-forgotten"):
        await connection.execute("select tocsin.begin_erasure(%s, now())", (seq,))
    calls: list[Any] = [
        "begin_erasure(1, now())",
        *("erase_records(1, 1, 2)", "erase_kept_events(1)", "erase_audit(1)", "end_erasure(1, '{}')"),
    ]
    for call in calls:
        for role in ("tocsin_operator", "tocsin_api", "tocsin_worker"):
            async with connection.transaction(force_rollback=True):
                await connection.execute(f"set local role {role}".encode())
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    async with connection.transaction():
                        await connection.execute(f"select tocsin.{call}".encode())
