"""Failing records are retried with backoff and end as dead letters; outages are not attempts."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import nats
import psycopg
import pytest

from tests.client.service import (
    billing,
    dead_letters,
    effects,
    note,
    publish,
    running,
    until_acknowledged,
    until_handled,
)
from tests.sql import all_rows, one_row
from tests.wait import eventually
from tocsin.client import Delivery, Event, Events, Records, Tombstone, Undeliverable
from tocsin.core.db import Connection
from tocsin.core.settings import Settings

QUICK = Delivery(back_off_s=0.02, attempts=3)


class Failing:
    """A handler that fails for one record a number of times, and stores when it was called."""

    def __init__(self, seq: int, times: int = 1_000_000) -> None:
        self.seq = seq
        self.times = times
        self.calls: list[tuple[int, float]] = []

    async def __call__(self, event: Event, connection: Connection) -> None:
        self.calls.append((event.seq, time.monotonic()))
        await note(event, connection)
        if event.seq == self.seq and self.times > 0:
            self.times -= 1
            raise ValueError(f"cannot bill\n{event.seq} é")

    @property
    def seqs(self) -> list[int]:
        return [seq for seq, _ in self.calls]


async def test_a_failing_record_is_retried_after_a_pause_that_doubles(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    await publish(settings, ledger, 2)
    handler = Failing(1, times=3)
    async with running(billing(settings, stop, handle=handler, delivery=Delivery(back_off_s=0.1)), stop=stop):
        await until_handled(ledger, [1, 2])
    assert handler.seqs == [1, 1, 1, 1, 2]
    at = [when for _, when in handler.calls]
    assert [at[n + 1] - at[n] >= wanted for n, wanted in enumerate((0.1, 0.2, 0.4))] == [True] * 3


async def test_in_order_later_records_wait_until_a_failing_record_is_a_dead_letter(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    await publish(settings, ledger, 3)
    handler = Failing(2)
    async with running(billing(settings, stop, handle=handler, delivery=QUICK), stop=stop):
        await until_handled(ledger, [1, 3])
        await until_acknowledged(settings)
    assert handler.seqs == [1, 2, 2, 2, 3]
    (letter,) = await dead_letters(settings)
    assert letter.subject == f"{settings.namespace}.dead.billing.2"
    assert {
        name: letter.headers[f"Tocsin-{name}"] for name in ("Consumer", "Subject", "Seq", "Attempts")
    } == {
        "Consumer": "billing",
        "Subject": f"{settings.subjects}.event.caused.noted._._",
        "Seq": "2",
        "Attempts": "3",
    }
    assert letter.headers["Tocsin-Reason"] == r"ValueError: cannot bill 2 \xe9"
    assert letter.headers["Tocsin-Original-Nats-Expected-Last-Sequence"] == "1"
    assert json.loads(letter.body)["seq"] == 2


async def test_with_concurrency_a_failing_record_delays_no_other_record(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    """As many records pause as may be in progress, for longer than the test takes.

    So the records that are handled meanwhile waited for none of them.
    """
    await publish(settings, ledger, 12)
    calls: list[int] = []

    async def fails_at_two_and_three(event: Event, connection: Connection) -> None:
        calls.append(event.seq)
        if event.seq in (2, 3):
            raise ValueError("no")
        await note(event, connection)

    delivery = Delivery(concurrency=2, back_off_s=600.0, longest_back_off_s=600.0)
    async with running(billing(settings, stop, handle=fails_at_two_and_three, delivery=delivery), stop=stop):
        await until_handled(ledger, [1, *range(4, 13)])
    assert sorted(calls) == list(range(1, 13)), "nor was any tried before its time"


async def test_with_concurrency_a_failing_record_becomes_a_dead_letter(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    await publish(settings, ledger, 12)
    handler = Failing(2)
    delivery = Delivery(concurrency=2, back_off_s=0.02, attempts=2)
    async with running(billing(settings, stop, handle=handler, delivery=delivery), stop=stop):
        await until_handled(ledger, [1, *range(3, 13)])
        await until_acknowledged(settings)
    assert handler.seqs.count(2) == 2
    assert len(await dead_letters(settings)) == 1


async def test_a_dead_letter_is_not_handled_again_nor_written_twice(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    await publish(settings, ledger, 1)
    async with running(billing(settings, stop, handle=Failing(1), delivery=QUICK), stop=stop):
        await until_acknowledged(settings)
    # As if the process had died after the letter and before the mark, and NATS had lost its state.
    await ledger.execute("update tocsin_inbox set last_seq = 0, last_id = null")
    await ledger.execute("delete from tocsin_inbox_ahead")
    again = asyncio.Event()
    async with running(billing(settings, again, handle=Failing(1), delivery=QUICK), stop=again):

        async def is_noted() -> bool:
            return bool((await one_row(ledger, "select count(*) as n from tocsin_inbox_ahead"))["n"])

        await eventually(is_noted, "the letter is noted again")
        await until_acknowledged(settings)
    assert len(await dead_letters(settings)) == 1
    assert await effects(ledger) == []


async def test_with_when_dead_stop_no_record_overtakes_a_failing_one(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    await publish(settings, ledger, 3)
    delivery = Delivery(back_off_s=0.02, attempts=2, when_dead="stop")
    handler = Failing(2)
    with pytest.raises(Undeliverable, match=r"'billing' stops at record 2 .*failed 2 times \(ValueError"):
        await billing(settings, stop, handle=handler, delivery=delivery)
    assert handler.seqs == [1, 2, 2]
    assert await dead_letters(settings) == []
    # With the handler fixed, the consumer continues with the same record.
    async with running(billing(settings, stop, delivery=delivery), stop=stop):
        await until_handled(ledger, [1, 2, 3])


async def test_a_record_that_kills_its_process_each_time_becomes_a_dead_letter(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    """A consumer that never answers stands for the process: NATS counts the attempts that began."""
    await publish(settings, ledger, 2)
    async with running(billing(settings, stop, handle=Failing(1, 1), delivery=QUICK), stop=stop):
        await until_handled(ledger, [1, 2])
    await publish(settings, ledger, 1)
    bus = await nats.connect(settings.nats)
    dying = await bus.jetstream().pull_subscribe_bind("billing", stream=settings.stream)
    for _ in range(3):
        (message,) = await dying.fetch(1, timeout=10)
        await message.nak()
    await bus.close()
    again = asyncio.Event()
    handler = Failing(0)
    async with running(billing(settings, again, handle=handler, delivery=QUICK), stop=again):
        await until_acknowledged(settings)
    assert handler.calls == []
    (letter,) = await dead_letters(settings)
    assert "3 attempts began, and the process ended" in letter.headers["Tocsin-Reason"]


async def test_an_unreadable_body_is_a_dead_letter_at_once_and_a_tombstone_is_read(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    await publish(settings, ledger, 1)
    bus = await nats.connect(settings.nats)
    js = bus.jetstream()
    await js.publish(f"{settings.subjects}.event.caused.noted._._", b"{not json")
    await js.publish(f"{settings.subjects}.event.caused.noted._._", b'{"specversion": "1.0"}')
    tombstone = {
        "specversion": "1.0",
        "id": "5f0c7ab4-1b1e-4f2d-9a63-3b6f9d1f6f10",
        "source": "tocsin/x",
        "type": "record-unsendable",
        "datacontenttype": "application/json",
        "seq": 4,
        "kind": "event",
        "data": {"reason": "too large"},
    }
    await js.publish(f"{settings.subjects}.tombstone.event", json.dumps(tombstone).encode())
    await bus.close()
    seen: list[Any] = []

    async def see(record: Any, _: Connection) -> None:
        seen.append(record)

    everything = Records(namespace=settings.namespace)
    async with running(billing(settings, stop, select=everything, handle=see), stop=stop):
        await until_acknowledged(settings)
    assert [type(record) for record in seen] == [Event, Tombstone]
    assert [letter.headers["Tocsin-Seq"] for letter in await dead_letters(settings)] == ["2", "3"]
    assert {letter.headers["Tocsin-Attempts"] for letter in await dead_letters(settings)} == {"1"}


async def test_a_handler_that_takes_too_long_is_cancelled_and_has_failed(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    await publish(settings, ledger, 1)

    async def sleepy(event: Event, connection: Connection) -> None:
        await note(event, connection)
        await asyncio.Event().wait()

    delivery = Delivery(timeout_s=0.05, attempts=2, back_off_s=0.01)
    async with running(billing(settings, stop, handle=sleepy, delivery=delivery), stop=stop):
        await until_acknowledged(settings)
    (letter,) = await dead_letters(settings)
    assert letter.headers["Tocsin-Reason"] == "TimeoutError: the handler took longer than 0.05 s"
    assert await effects(ledger) == []


async def test_a_handler_that_is_cancelled_from_inside_has_failed_and_the_consumer_continues(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    await publish(settings, ledger, 2)

    async def confused(event: Event, connection: Connection) -> None:
        if event.seq == 1:
            raise asyncio.CancelledError
        await note(event, connection)

    async with running(billing(settings, stop, handle=confused, delivery=QUICK), stop=stop):
        await until_handled(ledger, [2])
    (letter,) = await dead_letters(settings)
    assert letter.headers["Tocsin-Reason"] == "RuntimeError: the handler was cancelled from inside"


async def test_a_long_handler_keeps_its_record(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    """The handler runs longer than the ack wait, which the consumer extends three times per wait.

    Otherwise NATS would give the record to another process. The wait is so long that a machine that
    stalls for two seconds does not miss it.
    """
    await publish(settings, ledger, 1)
    began: list[float] = []
    delivery = Delivery(ack_wait_s=4.0)

    async def long(event: Event, connection: Connection) -> None:
        began.append(time.monotonic())
        await note(event, connection)

        async def is_long() -> bool:
            return time.monotonic() - began[0] > 2.1 * delivery.ack_wait_s

        await eventually(is_long, "more than twice the wait has passed")

    consumers = [billing(settings, stop, handle=long, delivery=delivery) for _ in range(2)]
    async with running(*consumers, stop=stop):
        await until_handled(ledger, [1])
        await until_acknowledged(settings)
    assert len(began) == 1
    bus = await nats.connect(settings.nats)
    info = await bus.jetstream().consumer_info(settings.stream, "billing")
    await bus.close()
    assert info.delivered is not None
    assert info.delivered.consumer_seq == 1


async def test_a_second_delivery_at_the_same_time_waits_and_is_skipped(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    """As after a freeze: NATS gave the record to another process while the first still runs."""
    await publish(settings, ledger, 1)
    began, go_on = asyncio.Event(), asyncio.Event()
    calls = 0

    async def slow(event: Event, connection: Connection) -> None:
        nonlocal calls
        calls += 1
        began.set()
        await go_on.wait()
        await note(event, connection)

    async with running(billing(settings, stop, handle=slow), billing(settings, stop, handle=slow), stop=stop):
        await began.wait()
        bus = await nats.connect(settings.nats)
        # The server gets a refusal of the first process, which still runs.
        info = await bus.jetstream().consumer_info(settings.stream, "billing")
        reply = f"$JS.ACK.{settings.stream}.billing.1.1.{info.delivered.consumer_seq}.{time.monotonic_ns()}.0"
        await bus.publish(reply, b"-NAK")

        async def second_waits() -> bool:
            rows = await all_rows(
                ledger,
                "select from pg_stat_activity where wait_event_type = 'Lock'"
                " and application_name like 'tocsin consume%%' and datname = current_database()",
                (),
            )
            return len(rows) == 1

        await eventually(second_waits, "the second delivery waits for the first")
        go_on.set()
        await until_handled(ledger, [1])
        await until_acknowledged(settings)
        await bus.close()
    assert calls == 1


async def test_events_of_another_namespace_are_not_seen(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    await publish(settings, ledger, 1)
    other = settings.model_copy(update={"namespace": f"{settings.namespace}-b"})
    await publish(other, ledger, 1)
    select = Events(namespace=other.namespace)
    async with running(billing(settings, stop, select=select, start=2), stop=stop):
        await until_handled(ledger, [2])


async def test_a_missing_column_holds_up_records_and_uses_up_no_attempt(
    settings: Settings,
    ledger: Connection,
    stop: asyncio.Event,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tocsin.client._consumer_loop._STUCK_S", 0.2)
    await publish(settings, ledger, 2)
    await ledger.execute("create table public.bill (seq bigint)")
    failures: list[int] = []

    async def handle(event: Event, connection: Connection) -> None:
        try:
            await connection.execute("insert into public.bill (seq, owner) values (%s, 'x')", (event.seq,))
        except psycopg.errors.UndefinedColumn:
            failures.append(event.seq)
            raise
        await note(event, connection)

    async with running(billing(settings, stop, handle=handle, delivery=QUICK), stop=stop):

        async def has_failed_often() -> bool:
            return len(failures) > QUICK.attempts

        await eventually(has_failed_often, "the handler has failed more often than it has attempts")
        await ledger.execute("alter table public.bill add column owner text")
        await until_handled(ledger, [1, 2])
    assert await dead_letters(settings) == []
    assert set(failures) == {1}
    errors = [entry.getMessage() for entry in caplog.records if entry.levelname == "ERROR"]
    assert errors
    assert all("is stuck at record 1 for" in error for error in errors)
    assert "UndefinedColumn" in errors[0]
    assert "fix the statement of the handler" in errors[0]
