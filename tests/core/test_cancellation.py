"""A cancellation ends the task, also one that arrives together with the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import psycopg
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from tests.cancellation import Answers
from tests.wait import eventually
from tocsin.core.bus import connect_bus
from tocsin.core.cancellation import cancellable
from tocsin.core.db import pool
from tocsin.core.settings import Settings


async def give_seven() -> int:
    return 7


async def fail() -> int:
    raise LookupError


async def cancelled_at_the_answer(
    monkeypatch: pytest.MonkeyPatch, work: Callable[[], Awaitable[object]], number: int = 1
) -> bool:
    """Whether a task was cancelled that got the cancellation together with this answer."""
    answers = Answers(monkeypatch)

    async def run() -> None:
        await work()

    task = asyncio.create_task(run())
    answers.watch(task, cancel_at=number)
    async with asyncio.timeout(30):
        await asyncio.wait([task])
    assert answers.count >= number, "so many were waited for"
    return task.cancelled()


@pytest.mark.parametrize("answer", [give_seven, fail])
async def test_a_cancellation_is_raised_in_place_of_the_result(
    monkeypatch: pytest.MonkeyPatch, answer: Callable[[], Awaitable[int]]
) -> None:
    assert await cancelled_at_the_answer(monkeypatch, lambda: cancellable(asyncio.wait_for(answer(), 30)))


async def test_without_a_cancellation_the_result_is_returned() -> None:
    assert await cancellable(give_seven()) == 7
    with pytest.raises(LookupError):
        await cancellable(fail())


async def test_a_result_that_is_not_returned_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    given_back: list[int] = []

    async def give_back(number: int) -> None:
        given_back.append(number)

    async def take() -> None:
        await cancellable(asyncio.wait_for(give_seven(), 30), undo=give_back)

    assert await cancelled_at_the_answer(monkeypatch, take)
    assert given_back == [7]


async def test_a_time_limit_holds_even_if_the_library_swallows_its_cancellation() -> None:
    async def swallow() -> int:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return 7
        return 8

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await cancellable(swallow())


async def test_a_cleanup_after_a_cancellation_is_not_cancelled_again() -> None:
    began, cleaned_up = asyncio.Event(), 0

    async def run() -> None:
        nonlocal cleaned_up
        try:
            began.set()
            await asyncio.Event().wait()
        finally:
            cleaned_up = await cancellable(give_seven())

    task = asyncio.create_task(run())
    await began.wait()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert cleaned_up == 7


@pytest.mark.parametrize("what", ["request", "flush"])
async def test_a_call_of_nats_is_cancelled(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    bus = await connect_bus(settings, "test")

    async def answer(message: Msg) -> None:
        await message.respond(b"")

    await bus.subscribe("asked", cb=answer)
    calls: dict[str, Callable[[], Awaitable[object]]] = {
        "request": lambda: bus.request("asked", timeout=30),
        "flush": lambda: bus.flush(30),
    }
    assert await cancelled_at_the_answer(monkeypatch, calls[what])
    await bus.close()


async def test_connecting_to_nats_is_cancelled_and_leaves_no_connection(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Client] = []
    connect = Client.connect

    async def connect_noted(client: Client, *arguments: object, **options: object) -> None:
        made.append(client)
        await connect(client, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Client, "connect", connect_noted)
    answers = Answers(monkeypatch)
    first = asyncio.create_task(connect_bus(settings, "test"))
    answers.watch(first)
    await (await first).close()
    for number in range(1, answers.count + 1):
        task = asyncio.create_task(connect_bus(settings, "test"))
        answers.watch(task, cancel_at=number)
        async with asyncio.timeout(30):
            await asyncio.wait([task])
        assert task.cancelled(), f"at answer {number}"
        assert not made[-1].is_connected


async def test_waiting_for_a_session_of_a_pool_is_cancelled_and_the_session_returned(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with pool(settings, "test", 1) as sessions:

        async def use() -> None:
            async with sessions.connection():
                raise AssertionError("nothing is done any more")

        held = await sessions.getconn()
        answers = Answers(monkeypatch)
        task = asyncio.create_task(use())
        answers.watch(task, cancel_at=1)

        async def is_waiting() -> bool:
            return answers.count == 1

        await eventually(is_waiting, "it waits for a session")
        await sessions.putconn(held)
        await asyncio.wait([task])
        assert task.cancelled()
        async with sessions.connection(30) as connection:
            assert isinstance(connection, psycopg.AsyncConnection)
