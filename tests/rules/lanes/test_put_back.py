"""Dead letters that are put back are processed as new arrivals, once, and their first arrival stays visible."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from cdc.publisher import Publisher
from rules.dispatch.dispatch_again import dispatch_again
from rules.dispatch.dispatcher import Dispatcher
from rules.lanes.batch import Writes
from rules.lanes.external_events import EventIngester
from rules.lanes.put_back import LetterFilter, put_back, record_seq, select_letters, with_arrival
from rules.lanes.record_lane import RecordLane
from rules.lanes.service import Lanes
from schemas.wire.event import Event
from tests.rules.apply.apply_setup import action, actions, note, put, rows, rule
from tests.rules.lanes.lane_setup import jetstream, lane_worker, make_stream, wait_for_rows
from tests.wait import eventually
from tocsin.core.db import Connection
from tocsin.core.errors import Refused
from tocsin.core.instant import instant_text, parse_instant
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings

TYPE = "---\ndatapoint_type:\n  name: temperature\n  key: temperature\n  value: number\n"


async def wait_for_letters(settings: Settings, count: int) -> None:
    async def are_there() -> bool:
        async with jetstream(settings) as js:
            return len(await select_letters(js, settings, LetterFilter())) == count

    await eventually(are_there, f"{count} dead letters")


async def publish(settings: Settings, subject: str, body: Any) -> None:
    async with jetstream(settings) as js:
        await js.publish(f"{settings.subjects}.{subject}", json.dumps(body).encode())


async def test_datapoints_that_are_put_back_are_stored_with_the_time_of_their_first_arrival(
    settings: Settings, connection: Connection
) -> None:
    await make_stream(settings)
    await put(connection, TYPE)
    async with running(lane_worker("one", settings)):
        await publish(settings, "datapoint.plant%207.temperature", {"value": "hot"})
        await publish(settings, "datapoint.plant%207.temperature", {"value": "cold"})
        await wait_for_letters(settings, 2)
        await put(connection, TYPE.replace("number", "string"))
        async with jetstream(settings) as js:
            letters = await select_letters(js, settings, LetterFilter(kind="datapoint"))
            for letter in letters:
                await put_back(js, settings, letter)
        await wait_for_rows(connection, "tocsin.datapoint", 2)
        await wait_for_letters(settings, 0)
    stored = await rows(connection, "datapoint", "stream_seq")
    assert [row["value"] for row in stored] == ["hot", "cold"]
    assert [instant_text(row["ts"]) for row in stored] == [letter.letter.at for letter in letters]
    assert all(row["arrived_at"] > row["ts"] for row in stored)


async def test_putting_a_letter_back_twice_sends_its_message_once(
    settings: Settings, connection: Connection
) -> None:
    await make_stream(settings)
    await put(connection, TYPE)
    async with running(lane_worker("one", settings)):
        await publish(settings, "datapoint.plant.temperature", {"value": "hot"})
        await wait_for_letters(settings, 1)
        await put(connection, TYPE.replace("number", "string"))
        async with jetstream(settings) as js:
            (letter,) = await select_letters(js, settings, LetterFilter())
            for _ in range(2):
                await put_back(js, settings, letter)
        await publish(settings, "datapoint.plant.temperature", {"value": "last"})
        await wait_for_rows(connection, "tocsin.datapoint", 2)
    assert {row["value"] for row in await rows(connection, "datapoint")} == {"hot", "last"}


async def test_letters_are_selected_by_seq_kind_reason_and_arrival(
    settings: Settings, connection: Connection
) -> None:
    await make_stream(settings)
    ingester = Service("ingest", EventIngester(settings).run)
    async with running(lane_worker("one", settings), ingester):
        await publish(settings, "datapoint.plant.a", {"value": None})
        await wait_for_letters(settings, 1)

        async def has_stream() -> bool:
            return ingester.problem is None

        await eventually(has_stream, "the queue of events exists")
        await publish(settings, "ingest.event", {"id": "1"})
        await wait_for_letters(settings, 2)
    async with jetstream(settings) as js:

        async def selected(**wanted: Any) -> list[int]:
            return [letter.seq for letter in await select_letters(js, settings, LetterFilter(**wanted))]

        letters = await select_letters(js, settings, LetterFilter())
        since = parse_instant(letters[1].letter.at)
        assert await selected(kind="event") == await selected(seqs={2, 99}) == [2]
        assert await selected(reason="VALUE is null") == [1]
        assert await selected(since=since) == [2]
        assert await selected(kind="event", reason="value is null") == []


async def test_a_body_that_was_cut_and_a_batch_that_was_partly_stored_are_kept(
    settings: Settings, connection: Connection
) -> None:
    await make_stream(settings)
    async with running(lane_worker("one", settings)):
        async with jetstream(settings) as js:
            await js.publish(f"{settings.subjects}.datapoint.plant.a", b" " * 100_000)
        await publish(settings, "datapoint.plant._", {"batch": [{"key": "a", "value": 1}, {"key": "b"}]})
        await wait_for_letters(settings, 2)
    async with jetstream(settings) as js:
        cut, partly = await select_letters(js, settings, LetterFilter())
        with pytest.raises(Refused, match="only the first 65,536 of 100,000 bytes"):
            await put_back(js, settings, cut)
        with pytest.raises(Refused, match="the other datapoints of its batch were stored"):
            await put_back(js, settings, partly)
        assert len(await select_letters(js, settings, LetterFilter())) == 2


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"value": 1}', {"value": 1, "ts": "T"}),
        (b'{"value": 1, "ts": "own"}', {"value": 1, "ts": "own"}),
        (b'{"batch": [{"value": 1}, {"value": 2, "ts": "own"}]}', None),
    ],
)
def test_a_body_without_a_time_gets_that_of_its_arrival(body: bytes, expected: Any) -> None:
    batch = {"batch": [{"value": 1, "ts": "T"}, {"value": 2, "ts": "own"}]}
    assert json.loads(with_arrival(body, "T")) == (expected or batch)


@pytest.mark.parametrize("body", [b"\xff", b"[1]", b'"x"', b'{"batch": 1}', b'{"value": 1e999}'])
def test_a_body_that_no_worker_accepts_is_sent_as_it_was(body: bytes) -> None:
    assert with_arrival(body, "T") == body


class FailOnce:
    """Work of the record lane that rejects the first event it gets."""

    async def plan(self, connection: Connection, events: Sequence[Event]) -> Writes:
        if any(event.type == "noted" for event in events):
            raise ZeroDivisionError("a defect")
        return await Dispatcher().plan(connection, events)


async def test_a_record_that_is_put_back_starts_its_actions_once(
    settings: Settings, connection: Connection
) -> None:
    await put(connection, action("tell") + rule("each", "tell"))
    lane = Service("lane", Lanes(settings, [RecordLane(settings, [FailOnce()])]).run)
    async with running(Service("cdc", Publisher(settings).run), lane):
        seq = await note(connection)
        await wait_for_letters(settings, 1)
    assert await actions(connection) == []
    async with jetstream(settings) as js:
        (letter,) = await select_letters(js, settings, LetterFilter(kind="record"))
    assert record_seq(letter) == seq
    for _ in range(2):
        await dispatch_again(connection, settings, record_seq(letter))
    assert len(await actions(connection)) == 1
    with pytest.raises(Refused, match="no event at seq 99"):
        await dispatch_again(connection, settings, 99)
