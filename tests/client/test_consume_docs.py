"""The Python of docs/consuming.md runs as printed, and its tables are complete."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, Process
from dataclasses import fields

from schemas.wire.calculated import CalculatedDatapoint
from schemas.wire.event import Event
from schemas.wire.step import ActionStep
from schemas.wire.tombstone import Tombstone
from tests.cdc.published_records import T0
from tests.client.service import bring_up
from tests.paths import ROOT
from tests.sql import all_rows
from tests.wait import eventually
from tocsin.client import Delivery
from tocsin.core.bus import connect_bus
from tocsin.core.db import Connection
from tocsin.core.record_log import append_events
from tocsin.core.records import NewEvent
from tocsin.core.settings import Settings

PAGE = (ROOT / "docs" / "consuming.md").read_text(encoding="utf-8")
CONSUME, REPLAY, BATCHES, PLAIN = re.findall(r"^```python\n(.*?)^```$", PAGE, re.S | re.M)


async def start(script: str, settings: Settings) -> Process:
    given = {
        "TOCSIN_NATS": settings.nats,
        "TOCSIN_NAMESPACE": settings.namespace,
        "SHOP_POSTGRES": settings.postgres,
    }
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", script), env={**os.environ, **given}, stdout=PIPE
    )


async def remind(settings: Settings, connection: Connection, *notes: str) -> None:
    events = [
        NewEvent(T0, "scheduled", "payment-reminder", {"note": text}, schedule="invoice-42") for text in notes
    ]
    await append_events(connection, events)
    await bring_up(settings)


async def test_the_consumer_handles_each_event_once_and_stops_when_asked(
    settings: Settings, ledger: Connection
) -> None:
    await ledger.execute("drop table tocsin_inbox, tocsin_inbox_ahead")
    await remind(settings, ledger, "first", "second")
    for expected in (["first", "second"], ["first", "second", "third"]):
        process = await start(CONSUME, settings)

        async def has_reminded(wanted: list[str] = expected) -> bool:
            there = await all_rows(ledger, "select to_regclass('reminder') as name")
            rows = await all_rows(ledger, "select note from reminder") if there[0]["name"] else []
            return [row["note"] for row in rows] == wanted

        await eventually(has_reminded, f"{expected} are handled", within=60)
        process.send_signal(signal.SIGTERM)
        output, _ = await process.communicate()
        assert process.returncode == 0
        assert output.decode().splitlines()[-1].endswith(f"+00:00 {expected[-1]}")
        await remind(settings, ledger, "third")


async def test_the_consumer_of_batches_handles_each_event_once(
    settings: Settings, ledger: Connection
) -> None:
    await ledger.execute("drop table tocsin_inbox, tocsin_inbox_ahead")
    await remind(settings, ledger, *map(str, range(20)))
    process = await start(BATCHES, settings)

    async def has_handled() -> bool:
        there = await all_rows(ledger, "select to_regclass('fire') as name")
        rows = await all_rows(ledger, "select schedule from fire") if there[0]["name"] else []
        return len(rows) == 20

    await eventually(has_handled, "all events are handled", within=60)
    process.send_signal(signal.SIGTERM)
    output, _ = await process.communicate()
    assert process.returncode == 0
    assert output.decode().splitlines()[0].startswith("handled 1 to ")
    assert output.decode().splitlines()[-1].endswith("to 20")


async def test_an_event_that_returns_at_a_new_sequence_makes_one_row(
    settings: Settings, ledger: Connection
) -> None:
    """As after `tocsin cdc adopt`: the clock fires the lost occurrence again, with the same id."""
    await ledger.execute("drop table tocsin_inbox, tocsin_inbox_ahead")
    await remind(settings, ledger, "first")
    (event,) = await all_rows(ledger, "select id from tocsin.event")
    bus = await connect_bus(settings, "test")
    js = bus.jetstream(timeout=10)
    lost = await js.get_msg(settings.stream, seq=1)
    body = (lost.data or b"").replace(b'"seq":1', b'"seq":2')
    await js.publish(lost.subject or "", body)
    await bus.close()
    process = await start(CONSUME, settings)
    async with asyncio.timeout(60):
        for seq in (1, 2):
            assert process.stdout is not None
            assert (await process.stdout.readline()).startswith(f"{seq} ".encode())
    process.send_signal(signal.SIGTERM)
    await process.communicate()
    assert await all_rows(ledger, "select event from reminder") == [{"event": event["id"]}]


async def test_the_replay_prints_every_event(settings: Settings, ledger: Connection) -> None:
    await remind(settings, ledger, "first", "second")
    await append_events(ledger, [NewEvent(T0, "scheduled", "schedule-fired", {}, schedule="beat")])
    await bring_up(settings)
    output, _ = await (await start(REPLAY, settings)).communicate()
    assert output.decode().splitlines() == [
        "1 payment-reminder",
        "2 payment-reminder",
        "3 schedule-fired",
        "1 fires since 2026-03-02",
    ]


async def test_the_plain_client_prints_an_event(settings: Settings, ledger: Connection) -> None:
    await remind(settings, ledger, "first")
    script = PLAIN.replace('"tocsin', f'"{settings.namespace}')
    output, _ = await (await start(script, settings)).communicate()
    assert output.decode().startswith("1 invoice-42 2026-03-02T08:00:00Z {'note': 'first'}")


def test_every_attribute_of_every_record_is_in_the_table() -> None:
    table = PAGE[PAGE.index("| attribute |") : PAGE.index("## What may change")]
    named = set(re.findall(r"`([a-z]+)`", " ".join(re.findall(r"^\| (.*?) \|", table, re.M))))
    models = (Event, ActionStep, CalculatedDatapoint, Tombstone)
    assert {name for model in models for name in model.model_fields} == named


def test_every_value_of_an_enumerated_attribute_is_named() -> None:
    fields_of = (
        (Event, "origin"),
        (ActionStep, "state"),
        (CalculatedDatapoint, "kind"),
        (Tombstone, "kind"),
    )
    schemas = [model.model_json_schema()["properties"][name] for model, name in fields_of]
    assert [value for schema in schemas for value in schema["enum"] if f"`{value}`" not in PAGE] == []


def test_every_option_of_delivery_is_documented() -> None:
    assert [one.name for one in fields(Delivery) if one.name not in PAGE] == []
