"""A failover of the service's database that loses commits: the lost records are handled again."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from nats.js.client import JetStreamContext

from tests.cdc.published_records import T0
from tests.client.failover import copy_tables, fail_over, publish_and_fail_over
from tests.client.service import (
    billing,
    bring_up,
    effects,
    publish,
    running,
    until_acknowledged,
    until_handled,
)
from tests.sql import all_rows
from tocsin.client import Delivery, Event, Events, consume, consume_batches
from tocsin.core.db import Connection
from tocsin.core.record_log import append_events
from tocsin.core.records import NewEvent
from tocsin.core.settings import Settings


def count_requests(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The requests for single messages from now on."""
    asked: list[Any] = []
    get_msg = JetStreamContext.get_msg

    async def count(js: JetStreamContext, *arguments: Any, **options: Any) -> Any:
        asked.append(options)
        return await get_msg(js, *arguments, **options)

    monkeypatch.setattr(JetStreamContext, "get_msg", count)
    return asked


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mark is checked at every turn of the loop instead of every few seconds."""
    monkeypatch.setattr("tocsin.client._consumer_loop._CHECK_MARK_S", 0.0)


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("is_idle", [True, False])
async def test_a_failover_that_lost_commits_repeats_the_lost_records_without_a_restart(
    settings: Settings, ledger: Connection, stop: asyncio.Event, concurrency: int, is_idle: bool
) -> None:
    await publish(settings, ledger, 5)
    delivery = Delivery(concurrency=concurrency, back_off_s=0.02)
    async with running(billing(settings, stop, delivery=delivery), stop=stop):
        await until_handled(ledger, range(1, 6))
        standby = await copy_tables(ledger)
        await publish(settings, ledger, 5)
        await until_handled(ledger, range(1, 11))
        await until_acknowledged(settings)
        await fail_over(ledger, standby)
        last = 10 if is_idle else await publish(settings, ledger, 2)
        await until_handled(ledger, range(1, last + 1))
        await until_acknowledged(settings)
    assert await effects(ledger) == list(range(1, last + 1))


async def test_a_failover_that_lost_commits_repeats_the_lost_records_after_a_restart(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    """The stop itself checks the mark as well: it must not move it over the lost records."""
    await publish(settings, ledger, 5)
    async with running(billing(settings, stop, delivery=Delivery(back_off_s=0.02)), stop=stop):
        await until_handled(ledger, range(1, 6))
        standby = await copy_tables(ledger)
        await publish(settings, ledger, 5)
        await until_handled(ledger, range(1, 11))
        await until_acknowledged(settings)
        await fail_over(ledger, standby)
        await publish(settings, ledger, 2)
        await until_handled(ledger, [*range(1, 6), 11, 12])
        await until_acknowledged(settings)
    again = asyncio.Event()
    async with running(billing(settings, again), stop=again):
        await until_handled(ledger, range(1, 13))


async def test_the_comparison_after_a_restore_ends_at_the_first_record_that_is_missing(
    settings: Settings, ledger: Connection, stop: asyncio.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many records were acknowledged since the backup: a few requests, not one for each."""
    await publish(settings, ledger, 300)
    async with running(billing(settings, stop, delivery=Delivery(concurrency=20)), stop=stop):
        await until_handled(ledger, range(1, 301))
        await until_acknowledged(settings)
    await ledger.execute("update tocsin_inbox set last_seq = 0, last_id = null")
    await ledger.execute("truncate effect")
    asked = count_requests(monkeypatch)
    began = asyncio.Event()
    requests_until_the_first_record = []

    async def hold(*_: Any) -> None:
        if not began.is_set():
            requests_until_the_first_record.append(len(asked))
        began.set()

    again = asyncio.Event()
    async with running(billing(settings, again, handle=hold), stop=again):
        async with asyncio.timeout(30):
            await began.wait()
    assert requests_until_the_first_record[0] <= 5


@pytest.mark.usefixtures("often")
@hypothesis_settings(max_examples=5)
@given(seed=st.integers(0, 2**32), concurrency=st.sampled_from([1, 3]), processes=st.integers(1, 2))
async def test_random_losses_leave_each_record_with_one_effect(
    settings: Settings, ledger: Connection, seed: int, concurrency: int, processes: int
) -> None:
    chance = random.Random(seed)
    await ledger.execute("truncate effect, tocsin_inbox, tocsin_inbox_ahead")
    consumer = f"billing-{seed}-{concurrency}-{processes}"
    first = await publish(settings, ledger, 1)
    stop = asyncio.Event()
    delivery = Delivery(concurrency=concurrency, back_off_s=0.02, attempts=1000)
    consumers = [
        billing(settings, stop, delivery=delivery, consumer=consumer, start=first) for _ in range(processes)
    ]
    async with running(*consumers, stop=stop):
        last = await publish_and_fail_over(settings, ledger, chance, consumer, first, at_once=6)
        await until_handled(ledger, range(first, last + 1))
        await until_acknowledged(settings, consumer)
    assert await effects(ledger) == list(range(first, last + 1))


@pytest.mark.parametrize("call", [consume, consume_batches])
async def test_a_rare_selection_is_compared_without_a_request_for_each_record(
    settings: Settings,
    ledger: Connection,
    stop: asyncio.Event,
    monkeypatch: pytest.MonkeyPatch,
    call: Any,
) -> None:
    """The deliveries have shown which selected record follows which."""
    for _ in range(200):
        await append_events(ledger, [NewEvent(T0, "caused", "noted", {}, owner=owner) for owner in "ab"])
    await bring_up(settings)
    handled: list[int] = []

    async def handle(events: Event | list[Event], _: Connection) -> None:
        handled.extend(event.seq for event in (events if isinstance(events, list) else [events]))

    asked = count_requests(monkeypatch)
    select = Events(namespace=settings.namespace, owner="b")
    async with running(billing(settings, stop, call=call, handle=handle, select=select), stop=stop):
        await until_acknowledged(settings)
    assert handled == list(range(2, 401, 2))
    assert await all_rows(ledger, "select last_seq from tocsin_inbox") == [{"last_seq": 400}]
    assert len(asked) < 20
