"""A message over which processes die is set aside, and no outage of a server counts as a death."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from cdc.publisher import Publisher
from rules.lanes import attempts
from rules.lanes.attempts import MOST_DEATHS, attempt, begin_attempt
from rules.lanes.dead_letters import read_dead_letters
from tests.rules.apply.apply_setup import action, actions, note, put, rows, rule
from tests.rules.lanes.lane_setup import jetstream, make_stream, send
from tests.sql import all_rows
from tocsin.core.db import Connection
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings

_MOST_STARTS = 30


def become(monkeypatch: pytest.MonkeyPatch, process: str) -> None:
    monkeypatch.setattr(attempts, "PROCESS", process)


async def test_the_death_of_a_process_counts_for_the_message_that_it_handled(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaths = []
    for process in ("a", "b", "c", "d"):
        become(monkeypatch, process)
        deaths.append(await begin_attempt(connection, "actions", 7))
    assert deaths == [0, 1, 2, MOST_DEATHS]


async def test_a_process_that_continues_after_an_outage_counts_nothing(connection: Connection) -> None:
    assert [await begin_attempt(connection, "actions", 7) for _ in range(5)] == [0] * 5


async def test_the_death_of_a_process_with_several_attempts_counts_for_none(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    for process in ("a", "b", "c"):
        become(monkeypatch, process)
        assert await begin_attempt(connection, "actions", 7) == 0
        assert await begin_attempt(connection, "data/0", 9) == 0


@pytest.mark.parametrize("error", [ValueError, asyncio.CancelledError, KeyboardInterrupt])
async def test_an_error_or_a_stop_ends_an_attempt_and_is_no_death(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    with suppress(error):
        async with attempt(connection, "actions", 7):
            raise error
    become(monkeypatch, "another")
    assert await begin_attempt(connection, "actions", 7) == 0


async def restart_until(settings: Settings, is_done: Callable[[], Awaitable[bool]]) -> int:
    """Run a worker that dies over messages, start it again whenever it died. Returns how often it died."""
    names = {"postgres", "nats", "namespace", "worker_ack_wait_s", "lease_ttl_s", "data_partitions"}
    variables = settings.model_dump(include=names)
    environment = {f"TOCSIN_{name.upper()}": str(value) for name, value in variables.items()}
    deaths = 0
    while True:
        assert deaths < _MOST_STARTS, "the worker dies again and again"
        worker = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.rules.deadly_worker", env={**os.environ, **environment}
        )
        try:
            ended = asyncio.create_task(worker.wait())
            while not ended.done():
                if await is_done():
                    return deaths
                await asyncio.wait({ended}, timeout=0.05)
            deaths += 1
        finally:
            if worker.returncode is None:
                worker.kill()
            await ended


async def test_a_datapoint_that_kills_every_worker_does_not_stop_other_owners(
    settings: Settings, short_lease: Settings, connection: Connection
) -> None:
    there = short_lease.model_copy(update={"data_partitions": 1})
    await make_stream(there)
    await send(there, [1], ["before", "deadly", "behind"])

    async def is_stored() -> bool:
        return bool(await all_rows(connection, "select from tocsin.datapoint where owner = 'behind'"))

    async with running(Service("cdc", Publisher(settings).run)):
        deaths = await restart_until(there, is_stored)
    async with jetstream(there) as js:
        (letter,) = await read_dead_letters(js, there, None, 10)
    assert deaths >= MOST_DEATHS
    assert "datapoint.deadly.temperature" in letter["subject"] or "data.0.deadly" in letter["subject"]
    assert "processes ended while they handled it" in letter["reason"]
    assert [row["owner"] for row in await rows(connection, "datapoint", "stream_seq")] == ["before", "behind"]


async def test_a_step_that_kills_every_worker_ends_its_run_and_the_others_are_performed(
    settings: Settings, short_lease: Settings, connection: Connection
) -> None:
    there = short_lease.model_copy(update={"data_partitions": 1})
    documents = [action("deadly"), action("quick"), rule("a", "deadly", 'type == "bad"'), rule("b", "quick")]
    await put(connection, "".join(documents))

    async def are_ended() -> bool:
        return {(row["name"], row["state"]) for row in await actions(connection)} == {
            ("deadly", "failed"),
            ("quick", "completed"),
        }

    async with running(Service("cdc", Publisher(settings).run)):
        await note(connection, type="bad")
        await note(connection)
        deaths = await restart_until(there, are_ended)
    assert deaths >= MOST_DEATHS
    (run,) = [row for row in await actions(connection) if row["name"] == "deadly"]
    assert "processes ended while they handled it" in str(run["active"])
