"""A replay reads from a position to the end, leaves nothing behind, and can follow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import nats
import pytest

from tests.cancellation import Answers
from tests.cdc.published_records import append_steps, live
from tests.client.service import bring_up, publish
from tests.sql import one_row
from tocsin.client import Event, Events, InvalidInput, Records, Steps, Unreachable, replay
from tocsin.core.db import Connection
from tocsin.core.settings import Settings


async def seqs(records: AsyncIterator[Any]) -> list[int]:
    return [record.seq async for record in records]


@pytest.fixture
async def filled(settings: Settings, ledger: Connection) -> Settings:
    """Six records: 1 and 2 of `a`, 3 and 4 of `b`, a step, one of `a`."""
    await publish(settings, ledger, 2, owner="a")
    await publish(settings, ledger, 2, owner="b")
    await append_steps(ledger, 1)
    await bring_up(settings)
    await publish(settings, ledger, 1, owner="a")
    return settings


@pytest.mark.parametrize(
    ("select", "start", "expected"),
    [
        (Events, "beginning", [1, 2, 3, 4, 6]),
        (Records, "beginning", [1, 2, 3, 4, 5, 6]),
        (Steps, "beginning", [5]),
        (Records, 3, [3, 4, 5, 6]),
        (Steps, 6, []),
        (Records, "new", []),
        (Records, 100, []),
    ],
)
async def test_a_replay_reads_from_a_position_to_the_current_end(
    filled: Settings, select: Any, start: Any, expected: list[int]
) -> None:
    chosen = select(namespace=filled.namespace)
    assert await seqs(replay(chosen, start=start, nats=filled.nats)) == expected


async def test_a_replay_reads_only_selected_records(filled: Settings) -> None:
    for owner, expected in (("a", [1, 2, 6]), ("b", [3, 4]), (["a", "b"], [1, 2, 3, 4, 6]), ("c", [])):
        chosen = Events(namespace=filled.namespace, owner=owner)
        assert await seqs(replay(chosen, nats=filled.nats)) == expected


async def test_a_replay_starts_at_a_commit_time_also_in_a_rebuilt_stream(
    filled: Settings, ledger: Connection
) -> None:
    row = await one_row(ledger, "select recorded_at from tocsin.event where seq = 3")
    records = Records(namespace=filled.namespace)
    for _ in range(2):
        replayed = await seqs(replay(records, start=row["recorded_at"], nats=filled.nats))
        assert replayed == [3, 4, 5, 6]
        async with live(filled) as publisher:
            await publisher.js.delete_stream(filled.stream)
            await publisher.resume()
            await publisher.drain()


async def test_a_replay_with_follow_waits_for_new_records(filled: Settings, ledger: Connection) -> None:
    events = replay(Events(namespace=filled.namespace), start=4, follow=True, nats=filled.nats)
    replayed: list[int] = []
    async with aclosing(events) as following:
        async for event in following:
            assert isinstance(event, Event)
            replayed.append(event.seq)
            if len(replayed) == 2:
                await publish(filled, ledger, 1)
            if len(replayed) == 3:
                break
    assert replayed == [4, 6, 7]


async def test_a_replay_skips_messages_that_are_not_records(filled: Settings) -> None:
    bus = await nats.connect(filled.nats)
    await bus.jetstream().publish(f"{filled.subjects}.event.caused.x._._", b"?")
    await bus.close()
    assert await seqs(replay(Records(namespace=filled.namespace), start=5, nats=filled.nats)) == [5, 6]


async def test_a_replay_leaves_no_consumer_behind(filled: Settings) -> None:
    """NATS removes the ephemeral consumer half a minute later at the latest."""
    await seqs(replay(Records(namespace=filled.namespace), nats=filled.nats))
    bus = await nats.connect(filled.nats)
    left = await bus.jetstream().consumers_info(filled.stream)
    await bus.close()
    assert [info for info in left if info.config.durable_name] == []
    assert all((info.config.inactive_threshold or 0) <= 30 for info in left)


async def test_an_invalid_argument_is_rejected(filled: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInput, match="selects no records"):
        await seqs(replay("event", nats=filled.nats))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="start=-1 is not a position"):
        await seqs(replay(Records(), start=-1, nats=filled.nats))
    monkeypatch.setattr("tocsin.client._durable._STREAM_TIMEOUT_S", 0.1)
    with pytest.raises(Unreachable, match="the stream 'nowhere' does not exist"):
        await seqs(replay(Records(namespace="nowhere"), nats=filled.nats))


@pytest.mark.parametrize("whose", ["ours", "the service's own"])
async def test_a_cancellation_that_arrives_together_with_an_answer_ends_the_replay(
    filled: Settings, monkeypatch: pytest.MonkeyPatch, whose: str
) -> None:
    """At any answer: during the start, or with the records."""
    client = await nats.connect(filled.nats)
    given = filled.nats if whose == "ours" else client
    records = Records(namespace=filled.namespace)
    answers = Answers(monkeypatch)
    first = asyncio.create_task(seqs(replay(records, nats=given)))
    answers.watch(first, is_alone=False)
    assert await first == [1, 2, 3, 4, 5, 6]
    assert answers.count >= 5
    for number in range(1, answers.count + 1):
        task = asyncio.create_task(seqs(replay(records, follow=True, nats=given)))
        answers.watch(task, cancel_at=number, is_alone=False)
        async with asyncio.timeout(10):
            await asyncio.wait([task])
        assert task.cancelled(), f"at answer {number}"
    await client.close()
