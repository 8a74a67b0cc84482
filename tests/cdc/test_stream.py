"""The stream is created as the chain needs it; an error names each setting that differs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from nats.js.api import DiscardPolicy, RetentionPolicy, StreamConfig
from nats.js.client import JetStreamContext

from cdc.errors import StreamRefused
from cdc.stream import ensure_stream, record_stream_config
from tests.cdc.published_records import append, live
from tocsin.core.bus import connect_bus
from tocsin.core.db import Connection
from tocsin.core.settings import Settings


@pytest.fixture
async def js(settings: Settings) -> AsyncIterator[JetStreamContext]:
    bus = await connect_bus(settings, "test")
    yield bus.jetstream(timeout=10)
    await bus.close()


async def test_a_new_stream_begins_after_the_records_that_the_log_no_longer_has(
    settings: Settings, js: JetStreamContext
) -> None:
    assert await ensure_stream(js, settings, horizon=42) == (42, 41)
    assert await ensure_stream(js, settings, horizon=50) == (42, 41)


async def test_a_new_stream_for_a_whole_log_begins_at_one(settings: Settings, js: JetStreamContext) -> None:
    assert await ensure_stream(js, settings, horizon=1) == (0, 0)
    info = await js.stream_info(settings.stream)
    assert (info.config.deny_delete, info.config.deny_purge) == (True, True)
    assert (info.config.allow_direct or False, info.state.last_seq) == (False, 0)


@pytest.mark.parametrize(
    "changed",
    [
        {"max_msgs": 100},
        {"max_bytes": 1_000_000},
        {"max_msgs_per_subject": 1},
        {"max_msg_size": 1000},
        {"no_ack": True},
        {"deny_delete": False},
        {"deny_purge": False},
        {"discard": DiscardPolicy.NEW},
        {"retention": RetentionPolicy.INTEREST},
        {"subjects": ["SUBJECTS.event.>"]},
        {"allow_rollup_hdrs": True, "deny_purge": False},
        {"allow_msg_ttl": True},
    ],
    ids=lambda changed: next(iter(changed)),
)
async def test_another_configuration_is_refused_by_name(
    settings: Settings, js: JetStreamContext, changed: dict[str, Any]
) -> None:
    if "subjects" in changed:
        changed = {"subjects": [f"{settings.subjects}.event.>"]}
    await js.add_stream(replace(record_stream_config(settings), **changed))
    with pytest.raises(
        StreamRefused, match=rf"{settings.stream}.* has \w+=.*correct it with `nats stream edit`"
    ) as refused:
        await ensure_stream(js, settings, horizon=1)
    assert any(f" has {name}=" in str(refused.value) for name in changed)


async def test_an_operator_may_choose_age_and_replicas(settings: Settings, js: JetStreamContext) -> None:
    await js.add_stream(replace(record_stream_config(settings), max_age=7200.0, description="ours"))
    assert await ensure_stream(js, settings, horizon=1) == (0, 0)


async def test_a_stream_with_overlapping_subjects_is_named_in_the_error(
    settings: Settings, js: JetStreamContext
) -> None:
    other = f"{settings.stream}-other"
    await js.add_stream(StreamConfig(name=other, subjects=[f"{settings.namespace}.>"]))
    try:
        with pytest.raises(StreamRefused, match="subjects overlap"):
            await ensure_stream(js, settings, horizon=1)
    finally:
        await js.delete_stream(other)


async def test_a_stream_that_nats_cannot_create_is_refused_with_the_reason(
    settings: Settings, js: JetStreamContext
) -> None:
    clustered = settings.model_copy(update={"stream_replicas": 3})
    with pytest.raises(StreamRefused, match=r"rejects the stream .*replicas > 1 not supported"):
        await ensure_stream(js, clustered, horizon=1)


async def test_a_publisher_does_not_write_to_a_stream_with_another_configuration(
    settings: Settings, connection: Connection, js: JetStreamContext
) -> None:
    await append(connection, 3)
    await js.add_stream(replace(record_stream_config(settings), max_msgs=2))
    with pytest.raises(StreamRefused, match="max_msgs=2, tocsin needs -1"):
        async with live(settings):
            pass
    assert (await js.stream_info(settings.stream)).state.last_seq == 0
