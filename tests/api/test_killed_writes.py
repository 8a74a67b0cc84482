"""Every kind of write: the API is killed in the middle of it, and the retry ends with one effect."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import aiohttp
import pytest

from tests.api.killed_api import api_process
from tests.api.recorded import Recorded, record
from tests.api.running_api import HttpAnswer, HttpClient, RunningApi
from tests.sessions import Sessions
from tests.sql import all_rows, one_row
from tests.wait import eventually
from tocsin.core.db import Connection
from tocsin.core.settings import Settings

WRITES: list[tuple[str, str, Any]] = [
    ("POST", "/v1/alarms/{alarm}:ack", {"note": "x"}),
    ("POST", "/v1/alarms/{alarm}:snooze", {"for": "1h"}),
    ("POST", "/v1/alarms:ack", {"ids": ["{alarm}"]}),
    ("POST", "/v1/alarms:snooze", {"ids": ["{alarm}"], "for": "1h"}),
    ("POST", "/v1/silences", {"matcher": "true", "for": "1h"}),
    ("POST", "/v1/schedules", {"owner": "plant-7", "name": "new", "every": "1h"}),
    ("PUT", "/v1/schedules/{schedule}", {"every": "1h"}),
    ("POST", "/v1/schedules/{schedule}:pause", None),
    ("POST", "/v1/schedules/{schedule}:run", None),
    ("POST", "/v1/schedules/{schedule}:cancel", None),
]


async def send(client: HttpClient, write: tuple[str, str, Any], of: Recorded) -> HttpAnswer:
    method, path, body = write
    headers = {"idempotency-key": "k1", "if-match": '"1"'} if method == "PUT" else {"idempotency-key": "k1"}
    if isinstance(body, dict) and "ids" in body:
        body = {**body, "ids": [str(of.alarm)]}
    options = {} if body is None else {"json": body}
    path = path.format(alarm=of.alarm, schedule=of.schedule)
    return await client.request(method, path, headers=headers, **options)


@pytest.mark.parametrize("write", WRITES, ids=[f"{method} {path}" for method, path, _ in WRITES])
async def test_a_write_that_is_killed_and_sent_again_has_one_effect(
    api: RunningApi,
    settings: Settings,
    connection: Connection,
    sessions: Sessions,
    write: tuple[str, str, Any],
) -> None:
    of = await record(api, connection, "plant-7")
    ann = await api.client("admin:*", name="ann")
    holder = await sessions("holder")
    async with api_process(settings) as (process, url):
        lost = HttpClient(ann.http, url, ann.token, ann.name)
        async with holder.transaction():
            # Each of these writes changes one of them before it commits.
            await holder.execute(
                "lock table tocsin.lock_audit, tocsin.lock_log, tocsin.schedule, tocsin.timer in exclusive mode"
            )
            sent = asyncio.create_task(send(lost, write, of))
            await eventually(lambda: _waits(connection), "the write is under way")
            process.kill()
            with suppress(aiohttp.ClientError):
                await sent
    answers: list[HttpAnswer] = []

    async def has_succeeded() -> bool:
        answers.append(await send(ann, write, of))
        assert answers[-1].status in (200, 201, 204, 409), answers[-1]
        return answers[-1].status != 409

    await eventually(has_succeeded, "the retry succeeds")
    again = await send(ann, write, of)
    assert (again.body, again.headers["idempotency-replayed"]) == (answers[-1].body, "true")
    row = await one_row(connection, "select count(*) as number from tocsin.audit where who = 'ann'")
    assert row["number"] == 1


async def _waits(connection: Connection) -> bool:
    return bool(
        await all_rows(
            connection,
            "select from pg_stat_activity where wait_event_type = 'Lock' and application_name = 'tocsin api'"
            " and datname = current_database()",
        )
    )
