"""The server partitions by owner; calculated datapoints of the record stream join the same partition, once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from nats.js.client import JetStreamContext
from nats.js.errors import NoStreamResponseError

from cdc.publisher import Publisher
from rules.lanes.batch import Writes
from rules.lanes.data_lane import DataBatch, StalenessChange
from rules.lanes.data_stream import data_stream_config, ensure_data_stream
from tests.cdc.published_records import smaller
from tests.rules.lanes.lane_setup import lane_worker
from tests.wait import eventually
from tocsin.core.bus import connect_bus
from tocsin.core.db import Connection
from tocsin.core.errors import Refused
from tocsin.core.record_log import append_records
from tocsin.core.records import NewCalculated, NewRecords
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings

T0 = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)


@pytest.fixture
async def js(settings: Settings) -> AsyncIterator[JetStreamContext]:
    bus = await connect_bus(settings, "test")
    yield bus.jetstream(timeout=10)
    await bus.close()


async def stored_subject(js: JetStreamContext, settings: Settings, subject: str) -> str:
    ack = await js.publish(f"{settings.subjects}.{subject}", b'{"value": 1}')
    return str((await js.get_msg(settings.data_stream, ack.seq)).subject)


async def test_all_keys_of_an_owner_are_in_one_partition(settings: Settings, js: JetStreamContext) -> None:
    await ensure_data_stream(js, settings, 1)
    stored = {
        owner: {await stored_subject(js, settings, f"datapoint.{owner}.{key}") for key in ("a", "a.b.c", "_")}
        for owner in ("plant-1", "plant%207", "_", "x")
    }
    for owner, subjects in stored.items():
        assert len({subject.split(".")[3] for subject in subjects}) == 1
        assert {subject.split(".", 5)[4:][0] for subject in subjects} == {owner}
        assert {subject.split(".", 5)[5] for subject in subjects} == {"a", "a.b.c", "_"}
    assert len({next(iter(subjects)).split(".")[3] for subjects in stored.values()}) > 1


async def test_a_subject_without_a_key_has_no_stream(settings: Settings, js: JetStreamContext) -> None:
    await ensure_data_stream(js, settings, 1)
    with pytest.raises(NoStreamResponseError):
        await js.publish(f"{settings.subjects}.datapoint.plant", b'{"value": 1}')


@pytest.mark.parametrize(
    "changed",
    [{"max_msgs": 5}, {"no_ack": True}, {"sources": None}, {"subject_transform": None}, {"subjects": ["x"]}],
    ids=lambda changed: next(iter(changed)),
)
async def test_another_configuration_is_rejected_with_the_name_of_the_stream(
    settings: Settings, js: JetStreamContext, changed: dict[str, Any]
) -> None:
    if "subjects" in changed:
        changed = {"subjects": [f"{settings.namespace}.other"], "subject_transform": None}
    await js.add_stream(replace(data_stream_config(settings), **changed))
    with pytest.raises(Refused, match=next(iter(changed))):
        await ensure_data_stream(js, settings, 1)


async def test_another_number_of_partitions_is_rejected(settings: Settings, js: JetStreamContext) -> None:
    await ensure_data_stream(js, settings, 1)
    with pytest.raises(Refused, match=r"partition\(8,1\).* tocsin needs .*partition\(4,1\)"):
        await ensure_data_stream(js, smaller(settings, data_partitions=4), 1)


async def test_the_maximum_age_is_a_setting(settings: Settings, js: JetStreamContext) -> None:
    await ensure_data_stream(js, smaller(settings, data_max_age_h=5.0), 1)
    info = await js.stream_info(settings.data_stream)
    assert info.config.max_age == 5 * 3600
    await ensure_data_stream(js, settings, 1)


async def test_a_stream_of_an_older_version_gets_the_missing_sources(
    settings: Settings, js: JetStreamContext
) -> None:
    wanted = data_stream_config(settings)
    (source,) = wanted.sources or []
    older = replace(source, subject_transforms=(source.subject_transforms or [])[:1])
    await js.add_stream(replace(wanted, sources=[older]))
    await ensure_data_stream(js, settings, 1)
    assert (await js.stream_info(settings.data_stream)).config.sources == wanted.sources


class CalculatedWork:
    """Collects the staleness changes of the batches."""

    def __init__(self) -> None:
        self.received: list[tuple[int, str, str]] = []

    async def plan(self, connection: Connection, batch: DataBatch) -> Writes:
        for input in batch.inputs:
            if isinstance(input, StalenessChange):
                self.received.append((batch.partition, input.calculated.owner, input.calculated.key))
        return Writes()


async def append_stale(connection: Connection, owner: str, key: str) -> None:
    calculated = NewCalculated(owner, key, T0, "stale", {"n": 1}, uuid4())
    await append_records(connection, NewRecords(calculated=[calculated]))


async def test_staleness_comes_once_in_the_partition_of_its_owner_even_if_it_is_sourced_again(
    settings: Settings, connection: Connection, js: JetStreamContext
) -> None:
    """As after a rebuild of the record stream, after which the server needs ten seconds to source again. A data
    stream that is created again also sources everything from the beginning."""
    work = CalculatedWork()
    async with (
        running(Service("cdc", Publisher(settings).run)),
        running(lane_worker("one", settings, work)),
    ):
        await append_stale(connection, "plant 1", "a")
        await append_stale(connection, "plant 2", "b.c")

        async def are_received() -> bool:
            return len(work.received) >= 2

        await eventually(are_received, "two staleness changes are received", within=30)
        await js.delete_stream(settings.data_stream)
        await append_stale(connection, "plant 1", "d")

        async def is_received() -> bool:
            return len(work.received) >= 3

        await eventually(is_received, "the new staleness change is received", within=60)
        assert (await js.stream_info(settings.data_stream)).state.messages == 3, "all were sourced again"
    assert sorted(key for _, _, key in work.received) == ["a", "b.c", "d"]
    partitions = {owner: partition for partition, owner, _ in work.received}
    for owner, token in (("plant 1", "plant%201"), ("plant 2", "plant%202")):
        subject = await stored_subject(js, settings, f"datapoint.{token}.x")
        assert subject.split(".")[3] == str(partitions[owner])
