"""A write with an Idempotency-Key has its effect once, whatever is repeated or killed."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import aiohttp
import pytest

from tests.api.running_api import HttpAnswer, HttpClient, RunningApi, running_api
from tests.api.writing_group import WRITING_GROUPS
from tests.sessions import Sessions
from tests.sql import all_rows
from tests.wait import eventually
from tocsin.core.db import Connection
from tocsin.core.settings import Settings

KEY = {"idempotency-key": "3c8a7e4a"}


@pytest.fixture
async def api(settings: Settings) -> AsyncIterator[RunningApi]:
    async with running_api(settings, WRITING_GROUPS) as started:
        yield started


async def notes(connection: Connection) -> list[str]:
    rows = await all_rows(connection, "select payload->>'text' as text from tocsin.event order by seq")
    return [row["text"] for row in rows]


async def post(client: HttpClient, text: str = "a", key: str | None = "k1") -> HttpAnswer:
    headers = {} if key is None else {"idempotency-key": key}
    return await client.post("/v1/notes", {"text": text}, headers=headers)


async def test_the_same_request_again_gets_the_first_answer_and_has_no_effect(
    api: RunningApi, connection: Connection
) -> None:
    ann = await api.client("operator:*")
    first, second = await post(ann), await post(ann)
    assert (first.status, first.json) == (201, {"seq": 1, "text": "a"})
    assert (second.status, second.body, second.headers["etag"]) == (201, first.body, first.headers["etag"])
    assert "idempotency-replayed" not in first.headers
    assert second.headers["idempotency-replayed"] == "true"
    assert await notes(connection) == ["a"]


async def test_without_a_key_each_request_has_its_effect(api: RunningApi, connection: Connection) -> None:
    ann = await api.client("operator:*")
    assert [(await post(ann, key=None)).status for _ in range(2)] == [201, 201]
    assert await notes(connection) == ["a", "a"]


async def test_another_request_with_a_used_key_is_rejected(api: RunningApi, connection: Connection) -> None:
    ann = await api.client("operator:*")
    await post(ann)
    answer = await post(ann, "b")
    assert (answer.status, answer.problem["detail"]) == (
        422,
        "the Idempotency-Key 'k1' was used for another request",
    )
    assert await notes(connection) == ["a"]


async def test_keys_of_two_callers_are_different_keys(api: RunningApi, connection: Connection) -> None:
    ann, bob = await api.client("operator:*"), await api.client("operator:*")
    assert [(await post(ann)).json["seq"], (await post(bob)).json["seq"]] == [1, 2]


async def test_a_refused_request_has_no_effect_and_its_key_stays_free(
    api: RunningApi, connection: Connection
) -> None:
    ann = await api.client("operator:*")
    assert [(await post(ann, "refuse")).status for _ in range(2)] == [409, 409]
    assert await notes(connection) == []
    assert (await post(ann, "a")).status == 201


async def test_a_request_under_way_is_409(
    api: RunningApi, connection: Connection, sessions: Sessions
) -> None:
    ann = await api.client("operator:*")
    holder = await sessions("holder")
    async with holder.transaction():
        await holder.execute("lock table tocsin.lock_log in exclusive mode")
        under_way = asyncio.create_task(post(ann))
        await eventually(lambda: _waits(connection), "the first request waits for the log")
        assert "is under way" in (await post(ann)).problem["detail"]
    assert (await under_way).status == 201
    assert (await post(ann)).headers["idempotency-replayed"] == "true"
    assert await notes(connection) == ["a"]


@pytest.mark.parametrize("key", ["", " ", "x" * 201, "a b", "ä"])
async def test_a_key_that_is_none_is_rejected(api: RunningApi, key: str) -> None:
    ann = await api.client("operator:*")
    headers = {"idempotency-key": key}
    answer = await ann.post("/v1/notes", {"text": "a"}, headers=headers)
    assert (answer.status, answer.problem["detail"][:15]) == (422, "Idempotency-Key")


async def test_the_answer_with_a_secret_is_never_stored(api: RunningApi, connection: Connection) -> None:
    admin = await api.client("admin:*")
    body = {"name": "job", "grants": ["viewer:*"]}
    assert (await admin.post("/v1/tokens", body, headers=KEY)).status == 422
    assert await all_rows(connection, "select * from tocsin.api_answer") == []


async def test_answers_are_kept_for_a_day(api: RunningApi, connection: Connection) -> None:
    ann = await api.client("operator:*")
    await post(ann, "a", "old")
    await connection.execute("update tocsin.api_answer set answered_at = answered_at - interval '25 hours'")
    await post(ann, "b", "new")
    assert [row["key"] for row in await all_rows(connection, "select key from tocsin.api_answer")] == ["new"]


async def test_a_stranger_learns_nothing_about_keys(api: RunningApi) -> None:
    await post(await api.client("operator:*"))
    assert (await post(await api.with_token(None))).status == 401
    assert (await post(await api.client("viewer:*"))).status == 403


@asynccontextmanager
async def api_process(settings: Settings) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    served = settings.model_copy(update={"api": "127.0.0.1:0"})
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.api.api_process", served.model_dump_json()), stdout=PIPE
    )
    try:
        assert process.stdout is not None
        line = ""
        while not line.startswith("http"):
            line = (await process.stdout.readline()).decode().strip()
        yield process, line
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


@pytest.mark.parametrize("is_committed", [False, True], ids=["before the commit", "after the commit"])
async def test_a_kill_in_the_middle_of_a_write_leaves_one_effect_after_the_retry(
    api: RunningApi, settings: Settings, connection: Connection, sessions: Sessions, is_committed: bool
) -> None:
    ann = await api.client("operator:*")
    holder = await sessions("holder")
    async with api_process(settings) as (process, url):
        lost = HttpClient(ann.http, url, ann.token, ann.name)
        if is_committed:
            sent = asyncio.create_task(post(lost))
            await eventually(lambda: _has_notes(connection, 1), "the effect is committed")
            process.kill()
        else:
            async with holder.transaction():
                await holder.execute("lock table tocsin.lock_log in exclusive mode")
                sent = asyncio.create_task(post(lost))
                await eventually(lambda: _waits(connection), "the write is under way")
                process.kill()
                with suppress(aiohttp.ClientError):
                    await sent
        with suppress(aiohttp.ClientError):
            await sent
    await eventually(lambda: _succeeds(ann), "the retry succeeds")
    assert await notes(connection) == ["a"]


async def _succeeds(client: HttpClient) -> bool:
    answer = await post(client)
    assert answer.status in (201, 409), answer
    return answer.status == 201


async def _has_notes(connection: Connection, count: int) -> bool:
    return len(await notes(connection)) == count


async def _waits(connection: Connection) -> bool:
    rows = await all_rows(
        connection,
        "select from pg_stat_activity where wait_event_type = 'Lock' and application_name = 'tocsin api'"
        " and datname = current_database()",
    )
    return bool(rows)
