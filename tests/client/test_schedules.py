"""Schedules of a service commit or roll back with its own transaction."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import psycopg
import pytest
from psycopg.pq import TransactionStatus
from psycopg.rows import dict_row

from clock.term import begin_term
from tests.records import events
from tests.rules.apply.apply_setup import action, put
from tests.sql import all_rows
from tocsin import client
from tocsin.client import (
    InvalidInput,
    Refused,
    Scheduled,
    get_schedule,
    list_schedules,
    schedule_cancel,
    schedule_cancel_all,
    schedule_once,
)
from tocsin.core.db import Connection
from tocsin.core.settings import Settings

LATER = datetime(2037, 3, 2, 8, 0, 0, 250_000, tzinfo=UTC)


@pytest.fixture
async def service(settings: Settings) -> AsyncIterator[Connection]:
    """A session of a service: no autocommit, dictionary rows, another timezone and search path."""
    opened: psycopg.AsyncConnection[Any] = await psycopg.AsyncConnection.connect(
        settings.postgres, row_factory=dict_row, options="-c timezone=Asia/Tokyo -c search_path=pg_catalog"
    )
    try:
        yield opened
    finally:
        await opened.close()


async def remind(connection: Connection, name: str = "remind", **changes: Any) -> Scheduled:
    values = {"owner": "svc", "name": name, "at": LATER, "payload": {"order": 17}, **changes}
    return await schedule_once(connection, **values)


async def test_a_schedule_exists_once_the_service_commits(
    service: Connection, connection: Connection
) -> None:
    made = await remind(service, created_by="shop")
    assert (
        made.status,
        made.generation,
        made.fire_at,
        made.deduped,
    ) == ("active", 1, LATER, False)
    assert made.fire_at is not None
    assert made.fire_at.tzinfo is UTC
    assert await get_schedule(connection, "svc", "remind") is None
    await service.commit()
    stored = await get_schedule(connection, "svc", "remind")
    assert stored is not None
    assert (stored.id, stored.next_at, stored.created_by) == (made.id, LATER, "shop")
    audit_rows = await all_rows(connection, "select who, via, verb from tocsin.audit")
    assert audit_rows == [{"who": "shop", "via": "client", "verb": "add"}]


async def test_a_rollback_of_the_service_leaves_no_schedule(
    service: Connection, connection: Connection
) -> None:
    await remind(service)
    await service.rollback()
    assert await list_schedules(connection) == []
    assert await all_rows(connection, "select * from tocsin.timer") == []


async def test_the_fire_carries_type_action_and_payload_verbatim(
    service: Connection, connection: Connection
) -> None:
    payload = {"nested": {"b": [1.5, None, "ü"], "a": True}}
    await put(connection, action("tell"))
    await remind(service, payload=payload, type="reminder", action="tell")
    await service.commit()
    await (await begin_term(connection, "test")).run_once(LATER)
    event = (await events(connection))[-1]
    assert (event["type"], event["action"], event["payload"], event["ts"]) == (
        "reminder",
        "tell",
        payload,
        LATER,
    )
    again = await remind(service, payload=payload, type="reminder", action="tell")
    assert (again.status, again.deduped, again.fire_at) == ("fired", True, None)


async def test_the_same_instant_in_another_zone_is_the_same_content(service: Connection) -> None:
    first = await remind(service)
    again = await remind(service, at=LATER.astimezone(timezone(timedelta(hours=9))))
    assert (again.deduped, again.id, again.fire_at) == (True, first.id, LATER)


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"payload": {"order": 18}}, 'payload is {"order": 17}, not {"order": 18};'),
        (
            {"at": LATER + timedelta(seconds=1)},
            "at is 2037-03-02T08:00:00.250000Z, not 2037-03-02T08:00:01.250000Z;",
        ),
        ({"type": "other"}, "type is schedule-fired, not other;"),
        ({"action": "tell"}, "action is none, not tell;"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
async def test_other_content_is_rejected_with_the_difference_and_the_transaction_stays_usable(
    service: Connection, connection: Connection, changes: dict[str, Any], difference: str
) -> None:
    await put(connection, action("tell"))
    await remind(service)
    with pytest.raises(
        Refused, match="schedule 'remind' of owner 'svc' exists with other content: "
    ) as refused:
        await remind(service, **changes)
    assert difference in str(refused.value)
    await remind(service, name="another")
    await service.commit()
    assert sorted(one.name for one in await list_schedules(connection, owner="svc")) == ["another", "remind"]
    # An error in the first statement leaves no transaction open.
    with pytest.raises(Refused):
        await remind(service, **changes)
    assert service.info.transaction_status != TransactionStatus.INERROR


async def test_invalid_arguments_are_rejected_before_they_reach_the_database(service: Connection) -> None:
    with pytest.raises(InvalidInput, match="at 2037-03-02T08:00:00 has no timezone: give an aware datetime"):
        await remind(service, at=datetime(2037, 3, 2, 8, 0))
    with pytest.raises(InvalidInput, match="the name '' has 0 characters"):
        await remind(service, name="")
    with pytest.raises(InvalidInput, match="is not JSON"):
        await remind(service, payload={"when": LATER})
    with pytest.raises(InvalidInput, match="neither owner nor type is given"):
        await schedule_cancel_all(service)
    assert service.info.transaction_status == TransactionStatus.IDLE


async def test_cancelling_is_part_of_the_services_transaction(
    service: Connection, connection: Connection
) -> None:
    await remind(service)
    await service.commit()
    assert await schedule_cancel(service, owner="svc", name="remind", cancelled_by="bob")
    await service.rollback()
    assert (await list_schedules(connection, status="active"))[0].name == "remind"
    assert await schedule_cancel(service, owner="svc", name="remind", cancelled_by="bob")
    assert not await schedule_cancel(service, owner="svc", name="remind")
    assert not await schedule_cancel(service, owner="svc", name="unknown")
    await service.commit()
    stored = await get_schedule(connection, "svc", "remind")
    assert stored is not None
    assert (stored.status, stored.generation, stored.next_at) == ("cancelled", 2, None)
    audit_rows = await all_rows(connection, "select who, via from tocsin.audit where verb = 'cancel'")
    assert audit_rows == [{"who": "bob", "via": "client"}]


async def test_all_of_an_owner_or_of_a_type_are_cancelled_and_nothing_else(service: Connection) -> None:
    for name, owner, type_ in (("a", "x", "t"), ("b", "x", "u"), ("c", "y", "t"), ("d", "y", "u")):
        await remind(service, name, owner=owner, type=type_)
    assert await schedule_cancel_all(service, owner="x") == 2
    assert await schedule_cancel_all(service, type="t") == 1
    assert [one.name for one in await list_schedules(service, status="active")] == ["d"]
    assert [one.name for one in await list_schedules(service, type="t", owner="y")] == ["c"]


async def test_with_autocommit_each_call_commits_by_itself(
    service: Connection, connection: Connection
) -> None:
    await service.set_autocommit(True)
    await remind(service)
    with pytest.raises(Refused):
        await remind(service, type="other")
    assert await get_schedule(connection, "svc", "remind") is not None


async def test_timers_are_armed_and_cancelled_once(connection: Connection) -> None:
    assert await client.arm(connection, "watchdog", "pump-1", "", LATER)
    assert not await client.arm(connection, "watchdog", "pump-1", "", LATER)
    assert await client.cancel(connection, "watchdog", "pump-1")
    assert await client.cancel_all(connection, "pump-1") == 0
    with pytest.raises(InvalidInput, match="has no timezone"):
        await client.arm(connection, "watchdog", "pump-1", "", datetime(2037, 3, 2))
