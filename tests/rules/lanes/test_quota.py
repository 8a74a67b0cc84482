"""What an owner sends beyond its quota is rejected, visible and bounded, and no other owner is affected."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rules.lanes import dead_letters
from rules.lanes.dead_letters import read_dead_letters
from rules.lanes.external_events import EventIngester
from rules.lanes.quota import Quotas, Usage
from rules.metrics import QUOTA_REJECTED
from schemas.wire.dead_letter import dead_letter
from schemas.wire.subjects import datapoint_subject
from tests.cdc.published_records import smaller, with_long_timeouts
from tests.rules.lanes.lane_setup import has_stream, jetstream, lane_worker, make_stream, wait_for_rows
from tests.sql import all_rows
from tests.wait import eventually
from tocsin.core.db import Connection
from tocsin.core.quota_text import OwnerQuota, QuotaPatterns
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings, read_settings

AT = datetime(2026, 3, 2, 8, 0, 30, tzinfo=UTC)


@pytest.fixture
def there(settings: Settings) -> Settings:
    return with_long_timeouts(smaller(settings, data_partitions=1))


def usage(**quotas: Any) -> Usage:
    return Usage(Quotas(read_settings().model_copy(update=quotas)))


async def letters(settings: Settings) -> list[dict[str, Any]]:
    async with jetstream(settings) as js:
        return await read_dead_letters(js, settings, None, 1000)


async def stored(connection: Connection, owner: str) -> list[str]:
    query = "select key from tocsin.datapoint where owner = %s order by stream_seq, position"
    return [row["key"] for row in await all_rows(connection, query, (owner,))]


async def quota_events(connection: Connection) -> list[tuple[str, Any]]:
    query = "select owner, payload from tocsin.event where type = 'quota-exceeded' order by seq"
    return [(row["owner"], row["payload"]["quota"]) for row in await all_rows(connection, query)]


async def send(settings: Settings, owner: str, *keys: str) -> None:
    async with jetstream(settings) as js:
        for key in keys:
            await js.publish(datapoint_subject(settings.subjects, owner, key), b'{"value": 1}')


def test_the_quota_of_a_minute_begins_again_in_the_next() -> None:
    all_usage = usage(quota_datapoints=10)
    batch = all_usage.batch()
    assert batch.add_datapoints("plant", AT, 10) is None
    assert batch.add_datapoints("plant", AT, 1) is not None
    assert batch.add_datapoints("other", AT, 10) is None
    assert batch.add_message("plant", AT + timedelta(minutes=1), 5) is None


def test_a_batch_that_is_planned_again_uses_its_quota_once() -> None:
    all_usage = usage(quota_datapoints=10)
    for _ in range(5):
        batch = all_usage.batch()
        assert batch.add_datapoints("plant", AT, 6) is None
    batch.keep()
    assert all_usage.batch().add_datapoints("plant", AT, 6) is not None


def test_only_the_first_rejection_of_a_minute_is_a_dead_letter_and_the_next_one_counts_the_others() -> None:
    batch = usage(quota_bytes=100).batch()
    found = [batch.add_message("plant", AT, 60) for _ in range(5)]
    assert [None if one is None else one.is_first for one in found] == [None, True, False, False, False]
    batch.add_message("plant", AT + timedelta(minutes=1), 60)
    later = batch.add_message("plant", AT + timedelta(minutes=1), 60)
    assert later is not None
    assert "3 messages before it were dropped" in later.reason
    assert len(batch.events) == 1


def test_the_first_pattern_that_matches_decides_and_zero_is_no_limit() -> None:
    patterns = QuotaPatterns.parse(
        "plant-1 series 7, plant-* series 5, plant-* events 0", OwnerQuota(1, 2, 3, 4)
    )
    assert patterns.of("plant-1") == OwnerQuota(7, 2, 3, 0)
    assert patterns.of("plant-2") == OwnerQuota(5, 2, 3, 0)
    assert patterns.of("other") == OwnerQuota(1, 2, 3, 4)
    assert usage(quota_events=0).batch().add_event("plant", AT) is None


@pytest.mark.parametrize("text", ["plant", "plant-* colours 5", "plant-* series many", "plant-* series -1"])
def test_a_quota_that_cannot_be_read_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="is not 'OWNER-PATTERN KIND NUMBER'"):
        QuotaPatterns.parse(text, OwnerQuota())


async def test_an_owner_with_too_many_series_gets_no_new_ones_and_keeps_the_others(
    there: Settings, connection: Connection
) -> None:
    limited = smaller(there, quota_series=3)
    await make_stream(there)
    worker = lane_worker("one", limited)
    async with running(worker):
        await send(there, "greedy", "k1", "k2", "k3", "k4", "k5", "k1")
        await send(there, "other", "a", "b", "c")
        await wait_for_rows(connection, "tocsin.datapoint where owner = 'other'", 3)
        await send(there, "greedy", "k9", "k2")
        await wait_for_rows(connection, "tocsin.datapoint where owner = 'greedy'", 5)
    assert await stored(connection, "greedy") == ["k1", "k2", "k3", "k1", "k2"]
    reasons = sorted(letter["reason"] for letter in await letters(there))
    assert len(reasons) == 3
    assert reasons[0].startswith("'k4' would be a new series of 'greedy', which has 3")
    assert await quota_events(connection) == [("greedy", "series")]
    assert worker.restarts == 0


async def test_all_series_together_have_a_quota(there: Settings, connection: Connection) -> None:
    limited = smaller(there, quota_all_series=2)
    await make_stream(there)
    async with running(lane_worker("one", limited)):
        await send(there, "plant", "a", "b")
        await wait_for_rows(connection, "tocsin.datapoint", 2)
        await connection.execute("analyze tocsin.current_value")
        await send(there, "stranger", "x")
        await send(there, "plant", "b")
        await wait_for_rows(connection, "tocsin.datapoint", 3)
    assert await stored(connection, "stranger") == []
    assert await quota_events(connection) == [("stranger", "all_series")]


@pytest.mark.parametrize("quota", ["datapoints", "bytes"])
async def test_an_owner_that_sends_too_much_is_cut_off_and_others_are_not(
    there: Settings, connection: Connection, quota: str
) -> None:
    limited = smaller(there, **{f"quota_{quota}": 20 if quota == "datapoints" else 240})
    before = QUOTA_REJECTED._counts[(quota,)]
    await make_stream(there)
    await send(there, "flood", *["k"] * 100)
    await send(there, "other", *["k"] * 15)
    async with running(lane_worker("one", limited)):
        await wait_for_rows(connection, "tocsin.datapoint where owner = 'other'", 15)
    # The messages may lie in two minutes.
    assert 20 <= len(await stored(connection, "flood")) <= 40
    found = await letters(there)
    assert 1 <= len(found) <= 2
    assert (
        f"the owner 'flood' sent more than {20 if quota == 'datapoints' else 240} {quota}"
        in found[-1]["reason"]
    )
    assert set(await quota_events(connection)) == {("flood", quota)}
    assert QUOTA_REJECTED._counts[(quota,)] - before >= 60


async def test_an_owner_with_too_many_events_is_cut_off_and_others_are_not(
    there: Settings, connection: Connection
) -> None:
    limited = smaller(there, quota_events=20)
    ingester = Service("ingest", EventIngester(limited).run)

    async def is_there() -> bool:
        return await has_stream(there, there.ingest_stream)

    async with running(ingester):
        await eventually(is_there, "the stream exists")
        async with jetstream(there) as js:
            for number in range(101):
                owner = "flood" if number < 100 else "other"
                event = {"id": str(number), "type": "noted", "owner": owner, "payload": {}}
                await js.publish(f"{there.subjects}.ingest.event", json.dumps(event).encode())
        await wait_for_rows(connection, "tocsin.event where owner = 'other'", 1)
    rows = await all_rows(connection, "select from tocsin.event where owner = 'flood' and type = 'noted'")
    assert 20 <= len(rows) <= 40
    assert 1 <= len(await letters(there)) <= 2
    assert set(await quota_events(connection)) == {("flood", "events")}
    assert ingester.restarts == 0


async def test_beyond_their_space_dead_letters_keep_only_the_beginning(
    there: Settings, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letters, "_READ_AGAIN_BYTES", 0)
    small = smaller(there, dead_letters_mb=1)
    async with jetstream(there) as js:
        await dead_letters.ensure_dead_letters(js, small)
        for number in range(40):
            letter = dead_letter("a reason", "a.subject", AT, b"x" * 60_000)
            await dead_letters.send_dead_letter(js, small, "datapoint", letter, f"letter {number}")
        info = await js.stream_info(small.dead_stream)
    newest, *_, oldest = await letters(there)
    assert info.state.messages == 40
    assert 1_000_000 < info.state.bytes < 1_200_000
    assert (len(oldest["body"]), len(newest["body"]), newest["size"]) == (60_000, 256, 60_000)
