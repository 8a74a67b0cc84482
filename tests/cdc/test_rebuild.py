"""A rebuilt stream starts nothing again: Postgres stores what was done, the stream does not."""

from __future__ import annotations

from cdc.log_reader import LogReader, Record
from cdc.publisher import Publisher
from cdc.rebuild import plan_rebuild, rebuild
from rules.worker import Worker
from tests.cdc.published_records import T0, append, publish_all, published
from tests.rules.actions.message_receiver import receiver
from tests.rules.apply.apply_setup import actions, note, publish_action, put, rule
from tests.wait import eventually
from tocsin.core.audit import Actor
from tocsin.core.bus import connect_bus
from tocsin.core.db import Connection
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings


async def test_old_actions_do_not_start_again_and_new_ones_do(
    settings: Settings, connection: Connection
) -> None:
    # Before the first rules: no version is in force for these, so reading them again starts nothing.
    await note(connection)
    target = f"received.{settings.namespace}.x"
    await put(connection, publish_action("tell", target, '{event: "{{ id }}"}') + rule("each", "tell"))
    bus = await connect_bus(settings, "test")

    async def are_completed(count: int) -> None:
        async def is_so() -> bool:
            return [row["state"] for row in await actions(connection)] == ["completed"] * count

        await eventually(is_so, f"{count} actions are completed", within=60)

    async with (
        receiver(settings) as world,
        running(Service("cdc", Publisher(settings).run), Service("worker", Worker(settings).run)),
    ):
        for _ in range(3):
            await note(connection)
        await are_completed(3)
        before = await actions(connection)
        reader = LogReader(connection)
        plan = await plan_rebuild(bus, settings, reader)
        assert plan.first == 1
        await rebuild(bus, settings, reader, Actor("ann", "test", T0), lambda _: None)
        await note(connection)
        await are_completed(4)
        await world.wait_for(4)
        await published(settings, connection)
    await bus.close()
    assert (await actions(connection))[:3] == before
    assert len(world.keys) == len(set(world.keys)) == 4


async def test_a_faster_publisher_does_not_stop_a_rebuild(settings: Settings, connection: Connection) -> None:
    await append(connection, 50)

    class Overtaken(LogReader):
        """Another publisher sends what was just read."""

        turns = 0

        async def read(self, after: int, limit: int) -> list[Record]:
            found = await super().read(after, limit)
            self.turns += 1
            if self.turns == 1:
                await publish_all(settings)
            return found

    bus = await connect_bus(settings, "test")
    reader = Overtaken(connection)
    assert await rebuild(bus, settings, reader, Actor("ann", "test", T0), lambda _: None) == 51
    await bus.close()
    assert len(await published(settings, connection)) == 51


async def test_the_plan_of_a_rebuild_counts_the_tombstones(
    settings: Settings, connection: Connection
) -> None:
    for _ in range(6):
        await note(connection)
    await publish_all(settings)
    await connection.execute("delete from tocsin.event where seq in (1, 3, 4)")
    await connection.execute(
        "select tocsin.record_gap(1, 1, 'lost', 'ann'), tocsin.record_gap(3, 4, 'lost', 'ann')"
    )
    bus = await connect_bus(settings, "test")
    plan = await plan_rebuild(bus, settings, LogReader(connection))
    await bus.close()
    # Records before the beginning of the log are not published again.
    assert (plan.first, plan.last, plan.missing, plan.messages) == (2, 6, 2, 6)
