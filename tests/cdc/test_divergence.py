"""Log and stream after a loss whose fires recur: a record is its id and the instant of its append."""

from __future__ import annotations

import itertools
from collections import Counter
from contextlib import suppress
from typing import Any
from uuid import UUID, uuid5

import hypothesis
import pytest
from hypothesis import strategies

from cdc.adopt import Loss, adopt, find_loss
from cdc.errors import StreamAhead, StreamDiffers
from cdc.log_reader import LogReader
from cdc.rebuild import plan_rebuild
from cdc.stream_check import StreamCheck
from cdc.verify import VerifyResult, common_range, verify
from tests.cdc.published_records import T0, append, bodies, forget_after, live, log, publish_all, smaller
from tests.sql import all_rows
from tocsin.core.audit import Actor
from tocsin.core.bus import open_bus
from tocsin.core.db import Connection
from tocsin.core.errors import Refused
from tocsin.core.record_log import append_events
from tocsin.core.records import NewEvent
from tocsin.core.settings import Settings

ACTOR = Actor("ann", "test", T0)
_FIRES = UUID("7d1f6f0a-4a57-5a3c-9c39-0d0c7f0e5a11")


async def fire(connection: Connection, *names: str) -> None:
    """Append fires, each in its own commit, with the id of their occurrence, as the clock does."""
    for name in names:
        event = NewEvent(
            T0, "scheduled", "schedule-fired", {"n": name}, schedule=name, id=uuid5(_FIRES, name)
        )
        await append_events(connection, [event])


async def adopt_all(settings: Settings, connection: Connection) -> list[Loss]:
    """Adopt until nothing is left to adopt."""
    losses: list[Loss] = []
    reader = LogReader(connection)
    async with open_bus(settings, "test") as bus:
        while (loss := await find_loss(bus.jetstream(), settings, reader)) is not None:
            await adopt(reader, settings, loss, ACTOR)
            losses.append(loss)
    return losses


async def verified(settings: Settings, connection: Connection) -> VerifyResult:
    reader = LogReader(connection)
    async with open_bus(settings, "test") as bus:
        return await verify(bus, settings, reader, await common_range(bus, settings, reader, None, None))


async def assert_published_once(settings: Settings, connection: Connection) -> list[dict[str, Any]]:
    """Log and stream agree, and each record of the log is in the stream once, at its own seq.

    Messages in a recorded gap are not counted: they are of a history that Postgres has lost.
    """
    await publish_all(settings)
    found = await verified(settings, connection)
    assert (found.differences, found.different) == ([], 0)
    stored = await bodies(settings)
    gaps = [range(gap.from_seq, gap.until_seq + 1) for gap in await LogReader(connection).gaps()]
    times = Counter(
        (body.get("id"), body.get("recordedat"))
        for seq, body in enumerate(stored, 1)
        if not any(seq in gap for gap in gaps)
    )
    for row in await log(connection):
        body = stored[row["seq"] - 1]
        assert body["id"] == str(row["id"])
        assert times[(body["id"], body["recordedat"])] == 1
    commits = await all_rows(connection, "select first_seq, last_seq from tocsin.log_commit order by 2")
    covered = [seq for row in commits for seq in range(row["first_seq"], row["last_seq"] + 1)]
    assert covered == [row["seq"] for row in await log(connection)]
    return stored


async def test_a_loss_whose_fires_recur_at_the_same_seqs_stops_the_publisher(
    settings: Settings, connection: Connection
) -> None:
    """Fires a and c recur at their old seqs, with an acknowledgement between them."""
    await append(connection, 2)
    await fire(connection, "a")
    await append(connection, 1)
    await fire(connection, "c")
    await publish_all(settings)
    before = await bodies(settings)
    await forget_after(connection, 2)
    await fire(connection, "a")
    await append(connection, 1)
    await fire(connection, "c")
    await append(connection, 2)
    with pytest.raises(StreamDiffers, match=r"at 5.*the log has .* recorded at .*`tocsin cdc adopt`"):
        await publish_all(settings)
    assert await bodies(settings) == before
    assert await adopt_all(settings, connection) == [
        Loss(3, 5, in_stream=True, stream_differs=True, to_move=5)
    ]
    stored = await assert_published_once(settings, connection)
    assert stored[:5] == before
    assert [body["type"] for body in stored[5:]] == [
        *("schedule-fired", "noted", "schedule-fired", "noted", "noted", "log-gap-recorded"),
    ]
    assert (stored[-1]["data"]["from"], stored[-1]["data"]["until"]) == (3, 5)


async def test_adopt_finds_the_first_difference_below_fires_that_recur_at_their_old_seqs(
    settings: Settings, connection: Connection
) -> None:
    """The missed fire at 3 was never published; fires 4 to 19 have the ids that the stream has there."""
    names = [f"fire-{number}" for number in range(16)]
    await append(connection, 2)
    await fire(connection, "lost", *names, "end")
    await publish_all(settings)
    await forget_after(connection, 2)
    await append(connection, 1)
    await fire(connection, *names)
    assert await adopt_all(settings, connection) == [
        Loss(3, 20, in_stream=True, stream_differs=True, to_move=17)
    ]
    await assert_published_once(settings, connection)


async def test_a_rebuild_is_refused_with_the_true_reason(settings: Settings, connection: Connection) -> None:
    await append(connection, 2)
    await fire(connection, "a")
    await publish_all(settings)
    await forget_after(connection, 2)
    await fire(connection, "a")
    async with open_bus(settings, "test") as bus:
        with pytest.raises(Refused, match="the stream has other records than the log at 3 to 3") as refused:
            await plan_rebuild(bus, settings, LogReader(connection))
    assert "`tocsin cdc adopt` first" in refused.value.remedy


async def take_a_sequence_of_the_log(settings: Settings, connection: Connection) -> None:
    """Another process takes sequence 3. The stream rejects record 3 and takes 4 to 6."""
    async with live(settings) as publisher:
        await append(connection, 2)
        await publisher.drain()
        await publisher.js.publish(f"{settings.subjects}.event.caused.noted.x.y", b'{"id": "foreign"}')
        await append(connection, 4)
        with pytest.raises(StreamDiffers, match="has foreign at 3"):
            await publisher.drain()
        assert (await publisher.js.stream_info(settings.stream)).state.last_seq == 6


async def test_a_foreign_message_before_a_chunk_does_not_hide_its_first_record(
    settings: Settings, connection: Connection
) -> None:
    await take_a_sequence_of_the_log(settings, connection)
    before = await log(connection)
    assert await adopt_all(settings, connection) == [
        Loss(3, 3, in_stream=True, stream_differs=True, to_move=1, is_inside=True)
    ]
    stored = await assert_published_once(settings, connection)
    after = {row["id"]: row["seq"] for row in await log(connection)}
    assert [after[row["id"]] for row in before] == [1, 2, 7, 4, 5, 6]
    assert stored[-1]["data"]["moved"] == 1


async def test_records_that_agree_are_not_published_twice(settings: Settings, connection: Connection) -> None:
    await take_a_sequence_of_the_log(settings, connection)
    await append(connection, 3)
    assert await adopt_all(settings, connection) == [
        Loss(3, 3, in_stream=True, stream_differs=True, to_move=1, is_inside=True)
    ]
    stored = await assert_published_once(settings, connection)
    assert [body["seq"] for body in stored[3:9]] == [4, 5, 6, 7, 8, 9]


async def test_the_stream_check_names_adopt_for_another_record_and_rebuild_for_another_body(
    settings: Settings, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cdc.stream_check._SAMPLE", 100)  # it compares every message
    await take_a_sequence_of_the_log(settings, connection)
    async with open_bus(settings, "test") as bus:
        problem = await StreamCheck(settings, connection, bus, "test").run_once()
        assert problem is not None
        assert (problem.kind, problem.seq) == ("record-differs", 3)
        assert "`tocsin cdc adopt`" in problem.remedy
        await adopt_all(settings, connection)
        await publish_all(settings)
        assert await StreamCheck(settings, connection, bus, "test").run_once() is None
        await connection.execute("update tocsin.event set payload = '{\"n\": -1}' where seq = 5")
        problem = await StreamCheck(settings, connection, bus, "test").run_once()
        assert problem is not None
        assert (problem.seq, "`tocsin cdc rebuild`" in problem.remedy) == (5, True)


_STEPS = strategies.lists(
    strategies.one_of(
        strategies.tuples(strategies.just("append"), strategies.integers(1, 3)),
        strategies.tuples(strategies.just("fire"), strategies.integers(0, 3)),
        strategies.tuples(strategies.just("publish"), strategies.just(0)),
        strategies.tuples(strategies.just("fail_over"), strategies.integers(0, 3)),
        strategies.tuples(strategies.just("restore"), strategies.integers(1, 6)),
        strategies.tuples(strategies.just("adopt"), strategies.just(0)),
    ),
    min_size=4,
    max_size=25,
)
_TABLES = ("event", "log_commit", "log_gap", "log_head")
_examples = itertools.count(1)


@hypothesis.settings(max_examples=30)
@hypothesis.given(steps=_STEPS)
async def test_after_any_losses_and_fires_again_each_record_is_in_the_stream_once(
    settings: Settings, connection: Connection, steps: list[tuple[str, int]]
) -> None:
    """Postgres returns to earlier states, also to those before an adopt, and fires recur with their ids."""
    instance = Instance(smaller(settings, namespace=f"{settings.namespace}_{next(_examples)}"), connection)
    await instance.clear()
    for name, number in steps:
        await getattr(instance, name)(number)
        await instance.save()
    await instance.adopt(0)
    await assert_published_once(instance.settings, connection)


class Instance:
    """A log with a copy of each of its states, and its stream."""

    def __init__(self, settings: Settings, connection: Connection) -> None:
        self.settings = settings
        self._connection = connection
        self._saved = 0

    async def clear(self) -> None:
        for table in _TABLES[:3]:
            await self._connection.execute(f"delete from tocsin.{table}".encode())
        await self._connection.execute("update tocsin.log_head set floor = 0")
        await self._connection.execute("drop schema if exists saved cascade")
        await self._connection.execute("create schema saved")
        await self.save()

    async def save(self) -> None:
        for table in _TABLES:
            await self._connection.execute(
                f"create table saved.{table}_{self._saved} as table tocsin.{table}".encode()
            )
        self._saved += 1

    async def restore(self, back: int) -> None:
        """Return to the state before the last steps."""
        number = max(0, self._saved - 1 - back)
        async with self._connection.transaction():
            for table in _TABLES:
                await self._connection.execute(f"delete from tocsin.{table}".encode())
                await self._connection.execute(
                    f"insert into tocsin.{table} table saved.{table}_{number}".encode()
                )

    async def fail_over(self, noted_after: int) -> None:
        """Publish fires that Postgres then loses, and fire them again with another event among them."""
        await self.save()
        await self.fire(3 - noted_after)
        await self.publish(0)
        await self.restore(0)
        await self.fire(noted_after)

    async def append(self, count: int) -> None:
        await append(self._connection, count)

    async def fire(self, noted_after: int) -> None:
        """Fire the next three occurrences that the log does not have, with another event among them."""
        fired = {row["id"] for row in await log(self._connection)}
        names = (f"occurrence-{number}" for number in itertools.count())
        for number, name in enumerate(
            itertools.islice((n for n in names if uuid5(_FIRES, n) not in fired), 3)
        ):
            await fire(self._connection, name)
            if number == noted_after:
                await append(self._connection, 1)

    async def publish(self, _: int) -> None:
        with suppress(StreamAhead):
            await publish_all(self.settings)

    async def adopt(self, _: int) -> None:
        await adopt_all(self.settings, self._connection)
