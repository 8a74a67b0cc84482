"""The three doors of the feed: each shows the same records, to those who may see them, for as long as they may."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import aiohttp
import pytest

from tests.api.live.feeds import append
from tests.api.live.listeners import connected, listening
from tests.api.running_api import RunningApi
from tests.client.service import bring_up
from tests.wait import eventually
from tocsin.api.access import known_tokens
from tocsin.api.live import door
from tocsin.core.db import Connection
from tocsin.core.service import stop_services
from tocsin.core.settings import Settings


@pytest.fixture
def eager_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "HEARTBEAT_S", 0.05)
    monkeypatch.setattr(door, "CHECK_S", 0.0)
    monkeypatch.setattr(known_tokens, "KEPT_S", 0.0)


async def write(settings: Settings, connection: Connection, count: int, owner: str = "plant-7") -> None:
    await append(connection, count, owner)
    await bring_up(settings)


async def test_server_sent_events_have_the_seq_as_id_and_the_cloudevent_as_data(
    api: RunningApi, connection: Connection
) -> None:
    ann = await api.client("viewer:*")
    async with listening(ann) as listener:
        await write(api.settings, connection, 2)
        first, second = await listener.next(), await listener.next()
    assert first is not None
    assert second is not None
    assert (first.id, first.event, first.data["owner"], second.id) == (1, "message", "plant-7", 2)
    assert first.data["specversion"] == "1.0"


async def test_a_browser_that_reconnects_misses_nothing_and_gets_nothing_twice(
    api: RunningApi, connection: Connection
) -> None:
    ann = await api.client("viewer:*")
    await write(api.settings, connection, 3)
    async with listening(ann, **{"last-event-id": "1"}) as listener:
        await write(api.settings, connection, 2)
        assert await listener.seqs(4) == [2, 3, 4, 5]
    await write(api.settings, connection, 2)
    async with listening(ann, "?after=5") as listener:
        assert await listener.seqs(2) == [6, 7]


async def test_a_query_selects_records_of_a_feed(api: RunningApi, connection: Connection) -> None:
    ann = await api.client("viewer:*")
    async with listening(ann, "?query=owner:plant-9") as listener:
        await write(api.settings, connection, 2)
        await write(api.settings, connection, 1, "plant-9")
        assert await listener.seqs(1) == [3]


async def test_no_door_shows_a_record_of_another_owner(api: RunningApi, connection: Connection) -> None:
    mine = await api.client("viewer:plant-7")
    await write(api.settings, connection, 1, "other")
    async with listening(mine, "?after=0") as listener, connected(mine) as socket:
        await socket.call("subscribe", after=0)
        for owner in ("other", "", "plant-70", "plant-7"):
            await write(api.settings, connection, 1, owner)
        assert await listener.seqs(1) == [5]
        assert (await socket.receive())["record"]["seq"] == 5
    page = await mine.get("/v1/records?after=0")
    assert ([item["seq"] for item in page.json["items"]], page.json["after"]) == ([5], 5)


async def test_a_stranger_and_a_caller_without_a_viewing_role_are_refused(api: RunningApi) -> None:
    stranger = await api.with_token(None)
    for path in ("/v1/live", "/v1/records?after=0", "/v1/ws"):
        assert (await stranger.get(path)).status in (401, 404), path
    with pytest.raises(aiohttp.WSServerHandshakeError, match="401"):
        async with stranger.http.ws_connect(f"{api.url}/v1/ws"):
            pass


@pytest.mark.parametrize(
    ("parameters", "words"),
    [("?after=-1", "the position is '-1'"), ("?after=x", "the position"), ("?query=onwer:x", "did you mean")],
)
async def test_a_wrong_position_or_query_is_a_problem(api: RunningApi, parameters: str, words: str) -> None:
    ann = await api.client("viewer:*")
    answer = await ann.get(f"/v1/live{parameters}")
    assert answer.status == 422
    assert words in answer.problem["detail"] + answer.problem.get("remedy", "")


async def test_a_position_of_another_log_is_a_resync(api: RunningApi, connection: Connection) -> None:
    ann = await api.client("viewer:*")
    async with listening(ann, "?after=1000") as listener:
        resync = await listener.next()
    assert resync is not None
    assert (resync.event, resync.data["after"], resync.id) == ("resync", 1000, 0)
    assert (await ann.get("/v1/records?after=1000")).status == 409


@pytest.mark.usefixtures("eager_checks")
async def test_a_feed_sends_heartbeats_that_move_the_position(
    api: RunningApi, connection: Connection
) -> None:
    ann = await api.client("viewer:plant-7")
    async with listening(ann) as listener:
        await write(api.settings, connection, 3, "other")
        async with asyncio.timeout(60):
            while (beat := await listener.next(with_heartbeats=True)) is not None and beat.id != 3:
                assert beat.data is None


@pytest.mark.usefixtures("eager_checks")
async def test_a_revoked_token_ends_every_feed(api: RunningApi) -> None:
    admin, ann = await api.client("admin:*"), await api.client("viewer:*", name="ann")
    async with listening(ann) as listener, connected(ann) as socket:
        assert (await admin.delete("/v1/tokens/ann")).status == 204
        end = await listener.next()
        assert end is not None
        assert (end.event, end.data["reason"]) == ("end", "the credentials are no longer valid")
        assert await listener.next() is None
        while (message := await socket.socket.receive()).type is aiohttp.WSMsgType.TEXT:
            pass
        assert (message.type, socket.socket.close_code) == (aiohttp.WSMsgType.CLOSE, 1008)


async def test_a_long_poll_answers_at_once_with_what_is_there_and_waits_otherwise(
    api: RunningApi, connection: Connection
) -> None:
    ann = await api.client("viewer:*")
    await write(api.settings, connection, 3)
    page = (await ann.get("/v1/records?after=1&limit=1&wait=30")).json
    assert ([item["seq"] for item in page["items"]], page["after"]) == ([2], 2)
    waiting = asyncio.create_task(ann.get("/v1/records?after=3&wait=30"))
    await write(api.settings, connection, 1)
    assert [item["seq"] for item in (await waiting).json["items"]] == [4]
    assert (await ann.get("/v1/records?after=4")).json == {"items": [], "after": 4}


async def test_a_long_backlog_is_read_in_pages(api: RunningApi, connection: Connection) -> None:
    ann = await api.client("viewer:*")
    await write(api.settings, connection, 1201)
    after = 0
    while after < 1201:
        page = (await ann.get(f"/v1/records?after={after}&limit=500&wait=60")).json
        assert [item["seq"] for item in page["items"]] == list(range(after + 1, page["after"] + 1))
        after = page["after"]


async def test_a_stopping_api_ends_its_feeds(api: RunningApi) -> None:
    ann = await api.client("viewer:*")
    async with listening(ann) as listener, connected(ann) as socket:
        poll = asyncio.create_task(ann.get("/v1/records?after=0&wait=60"))
        await socket.call("count")
        stopping = asyncio.create_task(stop_services([api.service]))
        end = await listener.next()
        assert end is not None
        assert end.data["reason"] == "the API stops"
        with suppress(aiohttp.ClientError):
            assert (await poll).json["items"] == []
        await stopping


async def test_a_principal_cannot_take_all_connections_and_one_that_leaves_is_forgotten(
    api: RunningApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "MAX_CONNECTIONS", 1)
    ann, bob = await api.client("viewer:*"), await api.client("viewer:*")
    async with listening(ann), listening(bob):
        assert (await ann.get("/v1/live")).status == 429

    async def is_admitted() -> bool:
        return (await ann.get("/v1/records?after=0")).status == 200

    await eventually(is_admitted, "the connection that left is forgotten")
