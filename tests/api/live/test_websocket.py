"""Calls and subscriptions over the WebSocket."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from tests.api.live.feeds import append
from tests.api.live.listeners import connected
from tests.api.running_api import RunningApi
from tests.client.service import bring_up
from tocsin.api.live.websocket import MAX_MESSAGE_CHARACTERS, MAX_SUBSCRIPTIONS
from tocsin.client import schedule_cancel, schedule_once
from tocsin.core.db import Connection


async def test_the_calls_show_schedules_of_the_owners_that_the_caller_may_view(
    api: RunningApi, connection: Connection
) -> None:
    order = await schedule_once(connection, owner="shop", name="order", at="in 2 days", payload={"order": 7})
    other = await schedule_once(connection, owner="other", name="order", at="in 1 day")
    done = await schedule_once(connection, owner="shop", name="done", at="in 3 days")
    await schedule_cancel(connection, owner="shop", name="done")
    async with (
        connected(await api.client("viewer:shop")) as shop,
        connected(await api.client("viewer:*")) as all,
    ):
        (pending,) = await shop.call("list")
        assert (pending["id"], pending["payload"], pending["name"]) == (str(order.id), {"order": 7}, "order")
        assert pending["time_offset"] == pytest.approx(2 * 86400, abs=60)
        assert [row["id"] for row in await all.call("list")] == [str(other.id), str(order.id)]
        assert (await shop.call("count"), await all.call("count")) == (1, 2)
        assert [row["id"] for row in await shop.call("history", status="cancelled")] == [str(done.id)]
        assert len(await shop.call("history", limit=1)) == 1
        assert await shop.call("failed") == []
        expected = {"total": 2, "pending": 1, "completed": 0, "failed": 0, "cancelled": 1}
        assert await shop.call("stats") == expected
        assert (await shop.call("get", id=str(order.id)))["status"] == "active"
        message = {"id": 9, "call": "get", "args": {"id": str(other.id)}}
        assert (await shop.problem(message))["status"] == 404
        unknown = {"id": 9, "call": "get", "args": {"id": str(uuid.uuid4())}}
        assert (await shop.problem(unknown))["title"] == (await shop.problem(message))["title"]


async def test_subscriptions_of_one_socket_have_their_own_queries_and_positions(
    api: RunningApi, connection: Connection
) -> None:
    ann = await api.client("viewer:*")
    await append(connection, 2, "plant-7")
    await bring_up(api.settings)
    assert (await ann.get("/v1/records?after=1&wait=60")).json["after"] == 2
    async with connected(ann) as socket:
        assert await socket.call("subscribe", query="owner:plant-7", after=1) == {
            "subscription": 1,
            "after": 1,
        }
        assert await socket.call("subscribe", query="owner:plant-9") == {"subscription": 2, "after": 2}
        await append(connection, 1, "plant-9")
        await bring_up(api.settings)
        received = [*socket.records]
        while len(received) < 2:
            received.append(await socket.receive())
        seqs = sorted((message["subscription"], message["record"]["seq"]) for message in received)
        assert seqs == [(1, 2), (2, 3)]
        assert await socket.call("unsubscribe", subscription=2) == {"subscription": 2}


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("x", "the message is not a call"),
        ("[]", "the message is not a call"),
        ({"id": 1, "call": "lst"}, "unknown call 'lst'"),
        ({"id": 1, "call": "list", "args": {"limit": 501}}, "args of 'list'"),
        ({"id": 1, "call": "list", "args": {"x": 1}}, "args of 'list'"),
        ({"id": 1, "call": "get", "args": {"id": "x"}}, "args of 'get'"),
        ({"id": 1, "call": "history", "args": {"status": "x"}}, "unknown status 'x'"),
        ({"id": 1, "call": "subscribe", "args": {"query": "x:y"}}, "unknown field 'x'"),
        ({"id": 1, "call": "unsubscribe", "args": {"subscription": 7}}, "there is no subscription 7"),
        ("x" * (MAX_MESSAGE_CHARACTERS + 1), "the message has"),
    ],
)
async def test_a_wrong_message_is_a_problem_and_the_socket_stays_open(
    api: RunningApi, message: Any, words: str
) -> None:
    async with connected(await api.client("viewer:*")) as socket:
        assert words in (await socket.problem(message))["detail"]
        assert await socket.call("count") == 0


async def test_a_socket_has_a_bounded_number_of_subscriptions(api: RunningApi) -> None:
    async with connected(await api.client("viewer:*")) as socket:
        for _ in range(MAX_SUBSCRIPTIONS):
            await socket.call("subscribe")
        problem = await socket.problem({"id": 99, "call": "subscribe", "args": {}})
        assert problem["detail"] == f"the socket has {MAX_SUBSCRIPTIONS} subscriptions"
