"""The mark in NATS: ordered, at least once at a crash, and never again before the mark."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import nats
import pytest

from tests.client.service import billing, bring_up, delete_stream, publish, running, until_acknowledged
from tests.wait import eventually
from tocsin.client import Delivery, Event, KvMark, Refused
from tocsin.client._mark_store import ConsumerContext, Mark
from tocsin.core.db import Connection
from tocsin.core.settings import Settings


class Seen:
    def __init__(self) -> None:
        self.seqs: list[int] = []

    async def __call__(self, event: Event) -> None:
        self.seqs.append(event.seq)

    async def until(self, expected: list[int]) -> None:
        async def are_there() -> bool:
            return len(self.seqs) >= len(expected)

        await eventually(are_there, f"{len(expected)} records are handled")
        assert self.seqs == expected


def by_mark(settings: Settings, stop: asyncio.Event, handle: Any, **changes: Any) -> Any:
    return billing(settings, stop, handle=handle, keep=KvMark(), **changes)


async def mark(settings: Settings) -> dict[str, Any]:
    bus = await nats.connect(settings.nats)
    try:
        bucket = await bus.jetstream().key_value(f"{settings.namespace}-consumers")
        stored: dict[str, Any] = json.loads((await bucket.get("billing")).value or b"")
        return stored
    finally:
        await bus.close()


async def test_records_are_handled_once_and_in_order_by_several_processes(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    await publish(settings, ledger, 20)
    seen = Seen()
    async with running(by_mark(settings, stop, seen), by_mark(settings, stop, seen), stop=stop):
        await seen.until(list(range(1, 21)))
    assert (await mark(settings))["seq"] == 20
    again = asyncio.Event()
    await publish(settings, ledger, 1)
    async with running(by_mark(settings, again, seen), stop=again):
        await seen.until(list(range(1, 22)))


async def test_a_rebuilt_stream_repeats_no_record(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    await publish(settings, ledger, 10)
    seen = Seen()
    async with running(by_mark(settings, stop, seen), stop=stop):
        await seen.until(list(range(1, 11)))
        await until_acknowledged(settings)
        await delete_stream(settings)
        await bring_up(settings)
        await publish(settings, ledger, 2)
        await seen.until(list(range(1, 13)))


async def test_a_crash_between_the_effect_and_the_mark_repeats_one_record(
    settings: Settings, ledger: Connection, stop: asyncio.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As docs/consuming.md documents: after a crash at this point one record is handled again."""
    await publish(settings, ledger, 2)
    seen = Seen()

    async def die(*_: Any) -> bool:
        raise SystemError("as if killed")

    with monkeypatch.context() as dying:
        dying.setattr("tocsin.client.kv_mark.OpenKvMark._write", die)
        dying.setattr("tocsin.client.kv_mark.OpenKvMark.begin", _begin)
        task = asyncio.create_task(by_mark(settings, stop, seen, delivery=Delivery(back_off_s=60)))
        await seen.until([1])
        stop.set()
        await task
    again = asyncio.Event()
    async with running(by_mark(settings, again, seen, consumer="billing"), stop=again):
        bus = await nats.connect(settings.nats)
        await bus.jetstream().delete_consumer(settings.stream, "billing")
        await bus.close()
        await seen.until([1, 1, 2])


async def _begin(kept: Any, first: Any) -> Any:
    value = json.dumps({"seq": first.seq, "id": None}).encode()
    await kept._bus.jetstream().publish(kept._subject, value)
    return first


async def test_a_second_delivery_is_skipped_and_does_not_lower_the_mark(
    settings: Settings, ledger: Connection
) -> None:
    bus = await nats.connect(settings.nats)
    context = ConsumerContext(bus, settings.namespace, "billing", 1, Delivery())
    done: list[int] = []

    async def work(_: object) -> None:
        done.append(1)

    async def frozen(_: object) -> None:
        """Another process handles this record and the next ones meanwhile."""
        assert await kept.once(Mark(8), work) is True
        assert await kept.once(Mark(9), work) is True

    async with KvMark().open(context) as kept:
        assert await kept.begin(Mark(4)) == Mark(4)
        assert await kept.begin(Mark(3)) == Mark(4)
        assert [await kept.once(Mark(seq), work) for seq in (4, 5, 5, 7, 6)] == [
            False,
            True,
            False,
            True,
            False,
        ]
        assert len(done) == 2
        assert await kept.once(Mark(8), frozen) is True
        assert await kept.mark() == Mark(9)
    await bus.close()


async def test_a_failing_record_is_retried_and_ends_as_a_dead_letter(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    await publish(settings, ledger, 3)
    calls: list[int] = []

    async def fails_at_two(event: Event) -> None:
        calls.append(event.seq)
        if event.seq == 2:
            raise ValueError("no")

    delivery = Delivery(attempts=2, back_off_s=0.02)
    async with running(by_mark(settings, stop, fails_at_two, delivery=delivery), stop=stop):
        await until_acknowledged(settings)
    assert calls == [1, 2, 2, 3]
    bus = await nats.connect(settings.nats)
    dead = await bus.jetstream().get_last_msg(
        f"{settings.namespace}-consumers-dead", f"{settings.namespace}.dead.billing.2"
    )
    await bus.close()
    assert (dead.headers or {})["Tocsin-Reason"] == "ValueError: no"


@pytest.mark.parametrize("value", [b"12", b"{}", b'{"seq": "x"}'])
async def test_a_key_that_is_not_a_mark_is_rejected_by_name(
    settings: Settings, ledger: Connection, stop: asyncio.Event, value: bytes
) -> None:
    await publish(settings, ledger, 1)
    async with running(by_mark(settings, stop, Seen()), stop=stop):
        await until_acknowledged(settings)
    bus = await nats.connect(settings.nats)
    await (await bus.jetstream().key_value(f"{settings.namespace}-consumers")).put("billing", value)
    await bus.close()
    with pytest.raises(Refused, match=r"\$KV\.test_\d+-consumers\.billing' holds .* is not a mark"):
        await by_mark(settings, asyncio.Event(), Seen())


async def test_a_consumer_whose_key_was_removed_begins_again_at_its_start(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    """As the error about a broken key advises. NATS keeps a marker of the removal under the key."""
    await publish(settings, ledger, 2)
    seen = Seen()
    async with running(by_mark(settings, stop, seen), stop=stop):
        await seen.until([1, 2])
        await until_acknowledged(settings)
    bus = await nats.connect(settings.nats)
    await (await bus.jetstream().key_value(f"{settings.namespace}-consumers")).delete("billing")
    await bus.jetstream().delete_consumer(settings.stream, "billing")
    await bus.close()
    again = asyncio.Event()
    async with running(by_mark(settings, again, seen, start=2), stop=again):
        await seen.until([1, 2, 2])
    assert (await mark(settings))["seq"] == 2
