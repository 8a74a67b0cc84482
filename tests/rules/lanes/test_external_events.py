"""External events are appended once per key, also if messages are repeated or invalid or a worker is killed."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from nats.js.client import JetStreamContext
from nats.js.errors import NotFoundError

from rules.lanes.dead_letters import read_dead_letters
from rules.lanes.external_events import EventIngester, append_external, ingest_stream_config
from schemas.wire.ingest_event import owned_key, read_ingest_event
from schemas.wire.subjects import ingest_subject
from tests.records import events
from tests.rules.apply.apply_setup import rows
from tests.rules.lanes.lane_setup import jetstream
from tests.sessions import Sessions
from tests.sql import blocked
from tests.wait import eventually
from tocsin.core.db import Connection
from tocsin.core.records import NewEvent
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings
from tocsin.core.streams import ensure

T0 = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)


async def send_events(settings: Settings, *bodies: Any, owner: str | None = None) -> None:
    """`owner` sends them on the subject of an owner."""
    async with jetstream(settings) as js:
        await ensure(js, ingest_stream_config(settings))
        for body in bodies:
            raw = body if isinstance(body, bytes) else json.dumps(body).encode()
            await js.publish(ingest_subject(settings.subjects, owner), raw)


async def wait_until_empty(settings: Settings) -> None:
    async def is_empty() -> bool:
        async with jetstream(settings) as js:
            return bool((await js.stream_info(settings.ingest_stream)).state.messages == 0)

    await eventually(is_empty, "everything is taken", within=60)


def ingester(settings: Settings) -> Service:
    return Service("ingest", EventIngester(settings).run)


def note(key: str, **more: Any) -> dict[str, Any]:
    return {"id": key, "type": "order-shipped", **more}


async def test_an_event_is_appended_with_the_origin_external(
    settings: Settings, connection: Connection
) -> None:
    correlation = "0b7c6ce5-0f0b-5d0e-8b0a-6f2d4f5f9a21"
    async with running(ingester(settings)):
        event = note("a", owner="plant 7", payload={"n": 1}, ts="2026-03-02T08:00:00Z", severity="high")
        await send_events(settings, {**event, "correlation_id": correlation}, note("b"))
        await wait_until_empty(settings)
    first, second = await events(connection)
    assert (first["origin"], first["type"], first["owner"]) == ("external", "order-shipped", "plant 7")
    assert (first["payload"], first["ts"], first["severity"]) == ({"n": 1}, T0, 4)
    assert (first["correlation_id"], first["seq"]) == (UUID(correlation), 1)
    assert first["id"] == read_ingest_event(json.dumps(note("a")).encode()).event_id
    assert (second["owner"], second["severity"], second["correlation_id"]) == ("", None, second["id"])
    assert abs((second["ts"] - second["recorded_at"]).total_seconds()) < 60, "when it arrived"


async def test_one_key_is_one_event_in_a_batch_in_two_batches_and_for_two_workers(
    settings: Settings, connection: Connection
) -> None:
    sent = [note(f"k{number % 7}", payload={"n": number}) for number in range(60)]
    await send_events(settings, *sent[:30])
    async with running(ingester(settings), ingester(settings), ingester(settings)):
        await send_events(settings, *sent[30:])
        await wait_until_empty(settings)
    appended = await events(connection)
    # Any of the workers may be the first to commit a key.
    assert sorted(row["payload"]["n"] % 7 for row in appended) == list(range(7))
    assert len(await rows(connection, "ingest_event")) == 7


async def test_a_batch_is_appended_in_the_order_in_which_it_was_sent(
    settings: Settings, connection: Connection
) -> None:
    await send_events(settings, *(note(f"k{9 - number}", payload={"n": number}) for number in range(10)))
    async with running(ingester(settings)):
        await wait_until_empty(settings)
    assert [row["payload"]["n"] for row in await events(connection)] == list(range(10))


async def test_invalid_events_become_dead_letters_with_the_reason_and_block_nothing(
    settings: Settings, connection: Connection
) -> None:
    # Postgres writes numbers with all their digits: this payload is small when sent and too large when stored.
    swollen = {"id": "s", "type": "t", "payload": {"n": [1e300] * 1_000}}
    bad = [b"\xff", {"id": "x"}, note("y", type="a b"), note("z", payload={"a": "\0"})]
    bad += [note("forged", type="alarm-resolved"), swollen]
    await send_events(settings, note("a"), *bad, note("b"))
    async with running(ingester(settings)):
        await wait_until_empty(settings)
    assert len(await events(connection)) == 2
    async with jetstream(settings) as js:
        letters = (await read_dead_letters(js, settings, "event", 10))[::-1]
    assert [letter["subject"] for letter in letters] == [f"{settings.subjects}.ingest.event"] * 6
    reasons = [letter["reason"] for letter in letters]
    for reason, said in zip(
        reasons,
        ("is not JSON (", "type is missing", "type is 'a b'", "U+0000", "is reserved", "it cannot be stored"),
        strict=True,
    ):
        assert said in reason


async def test_of_two_transactions_with_one_key_the_second_waits_and_appends_nothing(
    sessions: Sessions, connection: Connection
) -> None:
    first, second = await sessions("one"), await sessions("other")
    event = NewEvent(T0, "external", "noted", {"n": 1})
    async with first.transaction():
        assert await append_external(first, ["k"], [event]) == (1, [])
        appending = asyncio.create_task(append_external(second, ["k"], [event]))

        async def waits() -> bool:
            return await blocked(connection, second)

        await eventually(waits, "the second waits")
    assert await appending == (0, [])
    assert len(await events(connection)) == 1


async def test_a_worker_killed_between_append_and_acknowledgement_appends_once(
    short_lease: Settings, connection: Connection
) -> None:
    await send_events(short_lease, note("a"), note("b"))
    variables = short_lease.model_dump(
        include={"postgres", "nats", "namespace", "worker_ack_wait_s", "lease_ttl_s"}
    )
    environment = {f"TOCSIN_{name.upper()}": str(value) for name, value in variables.items()}
    victim = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.rules.lanes.external_events_process",
        env={**os.environ, **environment},
        stdout=PIPE,
    )
    try:
        assert victim.stdout is not None
        async with asyncio.timeout(60):
            while b"appended" not in (line := await victim.stdout.readline()):
                assert line, "the worker ended by itself"
    finally:
        victim.kill()
        await victim.wait()
    appended = await events(connection)
    assert len(appended) > 0
    async with running(ingester(short_lease)):
        await wait_until_empty(short_lease)
    after = await events(connection)
    assert after[: len(appended)] == appended
    assert len({row["id"] for row in after}) == len(after) == 2


async def test_a_queue_that_is_created_again_is_read(settings: Settings, connection: Connection) -> None:
    async with running(ingester(settings)):
        await send_events(settings, note("a"))
        await wait_until_empty(settings)
        async with jetstream(settings) as js:
            await js.delete_stream(settings.ingest_stream)
            await _made(js, settings)
        await send_events(settings, note("a"), note("b"))
        await wait_until_empty(settings)
    assert len(await events(connection)) == 2


async def _made(js: JetStreamContext, settings: Settings) -> None:
    async def is_made() -> bool:
        try:
            await js.consumer_info(settings.ingest_stream, "events")
        except NotFoundError:
            return False
        return True

    await eventually(is_made, "the worker makes it again", within=30)


async def test_an_event_that_answers_a_message_of_an_action_has_its_lineage_and_correlation(
    settings: Settings, connection: Connection
) -> None:
    cause = "11111111-1111-4111-8111-111111111111"
    headers = {"Tocsin-Lineage": "each,schedule%3Anightly", "Tocsin-Correlation-Id": cause}
    async with jetstream(settings) as js, running(ingester(settings)):
        await ensure(js, ingest_stream_config(settings))
        subject = f"{settings.subjects}.ingest.event"
        await js.publish(subject, json.dumps(note("a")).encode(), headers=headers)
        rubbish = {"Tocsin-Lineage": "no token, %zz", "Tocsin-Correlation-Id": "none"}
        await js.publish(subject, json.dumps(note("b")).encode(), headers=rubbish)
        await wait_until_empty(settings)
    first, second = await events(connection)
    assert first["correlation_id"] == UUID(cause)
    assert second["correlation_id"] == second["id"]
    (lineage,) = await rows(connection, "event_lineage")
    assert (lineage["event_id"], lineage["lineage"]) == (first["id"], ["each", "schedule:nightly"])


async def test_events_of_different_owners_that_fail_in_the_same_way_wait_for_the_cause(
    settings: Settings, connection: Connection
) -> None:
    await connection.execute("alter table tocsin.event_0 add constraint late check (false) not valid")
    service = ingester(settings)
    await send_events(settings, *(note(f"k{number}", owner=f"plant {number}") for number in range(5)))
    async with running(service):

        async def waits() -> bool:
            return 'violates check constraint "late"' in (service.problem or "")

        await eventually(waits, "the service waits")
        await connection.execute("alter table tocsin.event_0 drop constraint late")
        await wait_until_empty(settings)
    async with jetstream(settings) as js:
        assert await read_dead_letters(js, settings, None, 10) == []
    assert len(await events(connection)) == 5


async def test_a_bad_event_between_good_ones_is_rejected_alone(
    settings: Settings, connection: Connection
) -> None:
    await connection.execute("alter table tocsin.event_0 add constraint late check (owner !~ 'bad')")
    bad = [note(f"b{number}", owner=f"bad {number}") for number in range(4)]
    await send_events(settings, *bad, note("good"))
    async with running(ingester(settings)):
        await wait_until_empty(settings)
    async with jetstream(settings) as js:
        assert len(await read_dead_letters(js, settings, None, 10)) == 4
    assert len(await events(connection)) == 1


async def test_a_batch_of_bad_events_is_rejected_once_another_event_was_appended(
    settings: Settings, connection: Connection
) -> None:
    """One producer sends bad events for many owners: they wait only until a good event proves them bad."""
    await connection.execute("alter table tocsin.event_0 add constraint late check (owner !~ 'bad')")
    service = ingester(settings)
    await send_events(settings, *(note(f"b{number}", owner=f"bad {number}") for number in range(5)))
    async with running(service):

        async def waits() -> bool:
            return "events of different owners fail in the same way" in (service.problem or "")

        await eventually(waits, "the bad events wait")
        await send_events(settings, note("good"))
        await wait_until_empty(settings)
        assert service.restarts == 0
    async with jetstream(settings) as js:
        assert len(await read_dead_letters(js, settings, None, 10)) == 5
    assert len(await events(connection)) == 1


async def test_another_event_under_a_known_key_is_a_dead_letter_and_not_swallowed(
    settings: Settings, connection: Connection
) -> None:
    """A producer that takes the key of another one first must not make its event disappear."""
    taken = note("order-17/paid", owner="mallory")
    genuine = note("order-17/paid", owner="shop", payload={"order": 17})
    async with running(ingester(settings)):
        await send_events(settings, taken)
        await wait_until_empty(settings)
        await send_events(settings, genuine, {**taken, "ts": "2026-03-02T08:00:00Z"})
        await wait_until_empty(settings)
    assert [event["owner"] for event in await events(connection)] == ["mallory"]
    async with jetstream(settings) as js:
        (letter,) = await read_dead_letters(js, settings, "event", limit=10)
    assert letter["reason"] == "the id 'order-17/paid' is that of another event; use one id for one event"
    assert json.loads(letter["body"])["owner"] == "shop"


async def test_a_key_on_the_subject_of_an_owner_cannot_be_taken_by_another_producer(
    settings: Settings, connection: Connection
) -> None:
    """F11: `mallory` may send for her own owner, and knows the key of the shop."""
    key = "order-17/paid"
    async with running(ingester(settings)):
        await send_events(settings, note(key, owner="mallory"), note(owned_key("shop", key)))
        await send_events(settings, note(key), owner="mallory")
        await wait_until_empty(settings)
        await send_events(settings, note(key, payload={"order": 17}), note(key, owner="shop"), owner="shop")
        await send_events(settings, note(key, payload={"order": 17}), owner="shop")
        await wait_until_empty(settings)
    found = [(event["owner"], event["payload"]) for event in await events(connection)]
    assert found == [("mallory", {}), ("mallory", {}), ("shop", {"order": 17})]
    async with jetstream(settings) as js:
        another, forged = await read_dead_letters(js, settings, "event", limit=10)
    assert "ids of this form are those of events by owner" in forged["reason"]
    assert another["reason"] == f"the id '{key}' is that of another event; use one id for one event"


async def test_an_event_cannot_name_another_owner_than_its_subject(
    settings: Settings, connection: Connection
) -> None:
    """F9: NATS permissions bind a producer to its subjects, so they bind it to its owners."""
    async with running(ingester(settings)):
        await send_events(settings, note("a", owner="shop"), owner="mallory")
        await wait_until_empty(settings)
        await send_events(settings, note("b"), owner="plant 7")
        async with jetstream(settings) as js:
            await js.publish(f"{settings.subjects}.ingest.event.%zz", json.dumps(note("c")).encode())
        await wait_until_empty(settings)
    assert [event["owner"] for event in await events(connection)] == ["plant 7"]
    async with jetstream(settings) as js:
        letters = await read_dead_letters(js, settings, "event", limit=10)
    assert [letter["reason"] for letter in reversed(letters)] == [
        "the event has the owner 'shop', and its subject 'mallory': publish it on the subject of its owner",
        "'%zz' in the subject is not the encoding of an owner: encode it as in docs/data.md",
    ]


async def test_two_events_under_one_key_in_one_batch_are_an_event_and_a_dead_letter(
    settings: Settings, connection: Connection
) -> None:
    await send_events(
        settings, note("k", payload={"n": 1}), note("k", payload={"n": 2}), note("k", payload={"n": 1})
    )
    async with running(ingester(settings)):
        await wait_until_empty(settings)
    assert [event["payload"] for event in await events(connection)] == [{"n": 1}]
    async with jetstream(settings) as js:
        (letter,) = await read_dead_letters(js, settings, "event", limit=10)
    assert json.loads(letter["body"])["payload"] == {"n": 2}
