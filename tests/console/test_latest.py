"""A newer work ends the one before it, and no other."""

from __future__ import annotations

import asyncio

import pytest

from tocsin.console.latest import Latest


class Work:
    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.may_end = asyncio.Event()
        self.was_cancelled = False

    async def run(self) -> str:
        self.began.set()
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        return "result"


@pytest.mark.parametrize(("keys", "replaced"), [(("a", "a"), True), (("a", "b"), False), (("", ""), False)])
async def test_a_newer_work_ends_the_one_of_its_key(keys: tuple[str, str], replaced: bool) -> None:
    latest = Latest()
    first, second = Work(), Work()
    running = asyncio.create_task(latest.run(keys[0], first.run()))
    await first.began.wait()
    newer = asyncio.create_task(latest.run(keys[1], second.run()))
    await second.began.wait()
    first.may_end.set()
    second.may_end.set()
    assert await running == (None if replaced else "result")
    assert await newer == "result"
    assert first.was_cancelled is replaced


async def test_a_work_whose_request_ends_is_ended() -> None:
    latest = Latest()
    work = Work()
    running = asyncio.create_task(latest.run("a", work.run()))
    await work.began.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    again = Work()
    again.may_end.set()
    assert await latest.run("a", again.run()) == "result"
    assert work.was_cancelled


async def test_an_error_is_that_of_the_work() -> None:
    async def fails() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await Latest().run("a", fails())
