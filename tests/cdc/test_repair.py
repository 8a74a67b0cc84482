"""The publisher after real damage: a stream that is lost, behind, ahead or different; a log with a hole."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cdc.errors import LogHole, StreamAhead, StreamDiffers
from cdc.publisher import Publisher
from migrations.roles.create import create_roles
from migrations.runner import migrate
from tests.cdc.published_records import (
    Live,
    append,
    append_steps,
    bodies,
    forget_after,
    last_sequence,
    live,
    log,
    publish_all,
    published,
    smaller,
    with_long_timeouts,
)
from tests.wait import eventually
from tocsin.core.db import Connection, connect
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings
from tocsin.embedded import Nats, embedded_nats, embedded_postgres


@pytest.fixture
def own_nats(tmp_path: Path) -> Iterator[Nats]:
    with embedded_nats(tmp_path) as started:
        yield started


async def test_a_lost_stream_is_created_again_without_waiting_for_a_record(
    settings: Settings, connection: Connection
) -> None:
    await append(connection, 20)
    await append_steps(connection, 5)
    async with running(Service("cdc", Publisher(settings).run)):
        before = await published(settings, connection)
        async with live(settings) as other:
            await other.js.delete_stream(settings.stream)
        after = await published(settings, connection)
    assert after == before


async def test_a_stream_lost_with_a_chunk_in_flight_is_created_again(
    settings: Settings, connection: Connection
) -> None:
    await append(connection, 5)
    async with live(settings) as publisher:
        await publisher.drain()
        await publisher.js.delete_stream(settings.stream)
        await append(connection, 5)
        await publisher.drain()
        assert publisher.broken == 1
    assert len(await published(settings, connection)) == 10


async def test_a_stream_created_again_begins_at_the_first_seq_that_the_log_still_has(
    settings: Settings, connection: Connection
) -> None:
    await append(connection, 10)
    await publish_all(settings)
    async with live(settings) as publisher:
        await publisher.js.delete_stream(settings.stream)
    await connection.execute("delete from tocsin.event where seq <= 6")
    await publish_all(settings)
    assert [message.seq for message in await published(settings, connection)] == [7, 8, 9, 10]


async def test_a_stream_for_a_log_without_records_continues_at_the_head(
    settings: Settings, connection: Connection
) -> None:
    await append(connection, 4)
    await connection.execute("delete from tocsin.event")
    await publish_all(settings)
    assert await last_sequence(settings) == 4
    await append(connection, 1)
    await publish_all(settings)
    assert [message.seq for message in await published(settings, connection)] == [5]


async def test_a_stream_that_was_rolled_back_is_filled_up_from_the_log(
    settings: Settings, connection: Connection, own_nats: Nats, tmp_path: Path
) -> None:
    there = smaller(settings, nats=own_nats.url)
    await append(connection, 10)
    await publish_all(there)
    own_nats.stop()
    shutil.copytree(tmp_path / "nats", tmp_path / "backup")
    own_nats.start()
    await append(connection, 10)
    await publish_all(there)
    own_nats.stop()
    shutil.rmtree(tmp_path / "nats")
    shutil.move(tmp_path / "backup", tmp_path / "nats")
    own_nats.start()
    assert await last_sequence(there) == 10
    await publish_all(there)
    assert len(await published(there, connection)) == 20


async def test_nats_killed_and_started_again_is_an_ordinary_interruption(
    settings: Settings, connection: Connection, own_nats: Nats
) -> None:
    there = smaller(settings, nats=own_nats.url)
    async with running(Service("cdc", Publisher(there).run)):
        await append(connection, 50)
        await published(there, connection)
        own_nats.kill()
        await append(connection, 50)
        own_nats.start()
        await append(connection, 50)
        assert len(await published(there, connection)) == 150


async def test_postgres_crashed_and_started_again_is_an_ordinary_interruption(
    settings: Settings, tmp_path: Path
) -> None:
    with embedded_postgres(tmp_path) as postgres:
        there = smaller(settings, postgres=postgres.url)
        connection = await connect(with_long_timeouts(there), "test")
        await migrate(connection)
        await create_roles(connection)
        async with running(Service("cdc", Publisher(there).run)):
            await append(connection, 20)
            await published(there, connection)
            await connection.close()
            postgres.kill()
            postgres.start()
            connection = await connect(with_long_timeouts(there), "test")
            await append(connection, 20)
            assert len(await published(there, connection)) == 40
        await connection.close()


async def test_a_stream_ahead_of_the_log_stops_the_publisher_and_nothing_is_written(
    settings: Settings, connection: Connection
) -> None:
    await append(connection, 6)
    await append(connection, 4)
    await publish_all(settings)
    await forget_after(connection, 6)
    with pytest.raises(
        StreamAhead, match=r"is at 10, the log only at 6.*: restore a newer .*`tocsin cdc adopt`"
    ):
        await publish_all(settings)
    assert await last_sequence(settings) == 10


async def test_a_restored_log_that_has_grown_past_the_stream_is_detected(
    settings: Settings, connection: Connection
) -> None:
    await append(connection, 6)
    await append(connection, 4)
    await publish_all(settings)
    await forget_after(connection, 6)
    await append(connection, 10)
    with pytest.raises(StreamDiffers, match=r" at 10, the log has .*: restore a newer .*`tocsin cdc adopt`"):
        await publish_all(settings)
    assert await last_sequence(settings) == 10


async def test_a_foreign_message_stops_the_publisher_instead_of_hiding_a_record(
    settings: Settings, connection: Connection
) -> None:
    await append(connection, 2)
    async with live(settings) as publisher:
        await publisher.drain()
        await publisher.js.publish(f"{settings.subjects}.event.caused.noted.x.y", b"not ours")
        await append(connection, 1)
        with pytest.raises(StreamDiffers, match="a message that is not a record at 3"):
            await publisher.drain()
    assert await last_sequence(settings) == 3


async def test_an_idle_publisher_detects_a_foreign_message(
    settings: Settings, connection: Connection
) -> None:
    await append(connection, 1)
    service = Service("cdc", Publisher(settings).run)
    async with running(service):
        await published(settings, connection)
        async with live(settings) as other:
            await other.js.publish(f"{settings.subjects}.event.caused.noted.x.y", b"not ours")

        async def has_stopped() -> bool:
            return service.restarts > 0

        await eventually(has_stopped, "the publisher stops and says why")


async def test_a_stream_whose_messages_all_expired_during_an_outage_continues_at_its_sequence(
    settings: Settings, connection: Connection
) -> None:
    """Retention shorter than the outage: the messages are gone, the last sequence is not."""
    async with live(settings) as publisher:
        await append(connection, 3)
        await publisher.drain()
        config = (await publisher.js.stream_info(settings.stream)).config
        await publisher.js.update_stream(replace(config, max_age=0.2, duplicate_window=0.1))

        async def has_expired() -> bool:
            return (await publisher.js.stream_info(settings.stream)).state.messages == 0

        await eventually(has_expired, "the messages expire")
        await publisher.js.update_stream(config)
    await append(connection, 2)
    async with live(settings) as publisher:
        assert publisher.publisher.position == 3
        await publisher.drain()
        info = await publisher.js.stream_info(settings.stream)
        assert (info.state.first_seq, info.state.last_seq, info.state.messages) == (4, 5, 2)
    assert [body["seq"] for body in await bodies(settings, 4)] == [4, 5]


async def test_nothing_is_published_past_a_hole(settings: Settings, connection: Connection) -> None:
    await append(connection, 5)
    await connection.execute("delete from tocsin.event where seq = 3")
    async with live(settings) as publisher:
        with pytest.raises(LogHole, match="record 3 is missing"):
            await publisher.drain()
    assert await last_sequence(settings) == 2


async def drain_until_idle(publisher: Live) -> list[str]:
    await publisher.drain()
    stored = []
    for seq in range(1, publisher.publisher.position + 1):
        message = await publisher.js.get_msg(publisher.publisher._settings.stream, seq=seq)
        stored.append(f"{message.subject} {json.loads(message.data or b'')['type']}")
    return stored


async def test_a_record_larger_than_nats_accepts_becomes_a_tombstone_and_the_log_continues(
    settings: Settings, connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.embedded.nats._MAX_PAYLOAD_BYTES", 65_536)
    # Every size around the limit: where the body alone would pass, the headers decide.
    sizes = [*range(64_600, 65_300, 20), 100_000]
    with embedded_nats(tmp_path) as narrow:
        there = smaller(settings, nats=narrow.url)
        for size in sizes:
            await append_steps(connection, 1, json.dumps({"text": "x" * size}))
        await append(connection, 1, owner="after")
        async with live(there) as publisher:
            *stored, after = await drain_until_idle(publisher)
            tombstone = json.loads((await publisher.js.get_msg(there.stream, seq=len(sizes))).data or b"")
            assert (publisher.broken, publisher.bus.stats["reconnects"]) == (0, 0)
    whole = f"{settings.subjects}.action.tell action-step-due"
    replaced = f"{settings.subjects}.tombstone.action-step record-unsendable"
    assert stored == sorted(stored)
    assert {stored[0], stored[-1]} == {whole, replaced} == set(stored)
    assert after == f"{settings.subjects}.event.caused.noted._.after noted"
    assert tombstone["id"] == str((await log(connection))[-2]["id"])
    assert (tombstone["seq"], "nats accepts 65536" in tombstone["data"]["reason"]) == (len(sizes), True)


async def test_a_record_that_cannot_be_read_becomes_a_tombstone_and_the_log_continues(
    settings: Settings, connection: Connection
) -> None:
    await append(connection, 9)
    await connection.execute("update tocsin.event set ts = 'infinity' where seq in (4, 9)")
    async with live(settings) as publisher:
        stored = await drain_until_idle(publisher)
        # The next leader resumes after a tombstone as after any record.
        await publisher.resume()
    kinds = ["tombstone" if "record-unsendable" in text else "event" for text in stored]
    assert kinds == ["event"] * 3 + ["tombstone"] + ["event"] * 4 + ["tombstone"]


async def test_a_stream_that_keeps_rejecting_is_retried_more_and_more_slowly(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    async def note(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("cdc.publisher.asyncio.sleep", note)
    publisher = Publisher(settings)
    for progressed in [False] * 9 + [True, False]:
        await publisher._back_off(progressed=progressed)
    assert waits == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 0.0, 0.05]
