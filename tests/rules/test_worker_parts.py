"""A part of the worker that fails starts again alone: the others continue, and doctor and metrics name it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from cdc.publisher import Publisher
from rules import worker as worker_module
from rules.actions import performer, store
from rules.actions.channel_tests import ChannelTester
from rules.actions.performer import Performer
from rules.actions.reports import ReportConsumer
from rules.calc.evaluator import CalcEvaluator
from rules.health.decide import HealthDecider
from rules.lanes.dead_letters import read_dead_letters
from rules.lanes.external_events import EventIngester
from rules.lanes.service import Lanes
from rules.lanes.status import list_worker_problems
from rules.metrics import WORKER
from rules.worker import Worker
from tests.rules.apply.apply_setup import action, actions, note, put, rule
from tests.rules.lanes.lane_setup import jetstream, make_stream, send
from tests.sql import all_rows
from tests.wait import eventually
from tocsin.core.db import Connection
from tocsin.core.metrics import format_metrics
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings
from tocsin.doctor.checks import check_worker_problems

PARTS: dict[str, Any] = {
    "lanes": Lanes,
    "perform": Performer,
    "reports": ReportConsumer,
    "ingest": EventIngester,
    "health": HealthDecider,
    "calc": CalcEvaluator,
    "channel tests": ChannelTester,
}


async def crash(self: object) -> None:
    raise RuntimeError("a defect of this part")


async def send_event(settings: Settings) -> None:
    event = {"id": "one", "type": "noted", "owner": "shop", "payload": {}}
    async with jetstream(settings) as js:
        await js.publish(f"{settings.subjects}.ingest.event", json.dumps(event).encode())


def has_rows(connection: Connection, query: str) -> Callable[[], Awaitable[bool]]:
    async def is_there() -> bool:
        return bool(await all_rows(connection, query))

    return is_there


@pytest.mark.parametrize("failing", PARTS)
async def test_the_other_parts_work_while_one_crashes_again_and_again(
    settings: Settings, connection: Connection, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    monkeypatch.setattr(worker_module, "_CHECK_S", 0.1)
    monkeypatch.setattr(PARTS[failing], "run", crash)
    there = settings.model_copy(update={"data_partitions": 1})
    await put(connection, action("quick") + rule("each", "quick"))
    await make_stream(there)
    service = Service("worker", Worker(there).run)
    async with running(Service("cdc", Publisher(there).run), service):
        if failing != "ingest":

            async def is_sent() -> bool:
                try:
                    await send_event(there)
                except Exception:  # the stream is not created yet
                    return False
                return True

            await eventually(is_sent, "the ingest stream exists")
            await eventually(
                has_rows(connection, "select from tocsin.event where owner = 'shop'"), "an event"
            )
        if failing != "lanes":
            await send(there, [1], ["plant"])
            await eventually(has_rows(connection, "select from tocsin.datapoint"), "a datapoint is stored")
        if failing not in ("lanes", "perform"):
            done = has_rows(connection, "select from tocsin.action where state = 'completed'")
            await note(connection)
            await eventually(done, "a run is completed")

        async def is_reported() -> bool:
            return any(
                reason.startswith(f"{failing}:") for _, reason, _ in await list_worker_problems(connection)
            )

        await eventually(is_reported, "the problem names the part")
        (finding,) = check_worker_problems(await list_worker_problems(connection))
        metrics = format_metrics([WORKER])
        restarts = service.restarts

        async def is_tried_again() -> bool:
            return service.restarts > restarts

        await eventually(is_tried_again, "the part starts again")
    assert finding.state == "red"
    assert f"{failing}: RuntimeError: a defect of this part" in finding.text
    assert f'tocsin_part_up{{part="{failing}"}} 0' in metrics
    up = [name for name in PARTS if f'tocsin_part_up{{part="{name}"}} 1' in metrics]
    assert set(up) == set(PARTS) - {failing}


async def test_a_step_that_cannot_be_handled_ends_its_run_and_stops_no_other(
    settings: Settings, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = store.read_facts

    async def read_facts(connection: Connection, run: Any, **options: Any) -> Any:
        if run.name == "bad":
            raise TypeError("a defect that only this run meets")
        return await original(connection, run, **options)

    monkeypatch.setattr(performer, "read_facts", read_facts)
    await put(
        connection, action("bad") + action("good") + rule("a", "bad", 'type == "bad"') + rule("b", "good")
    )
    service = Service("worker", Worker(settings).run)

    async def are_ended() -> bool:
        states = [(row["name"], row["state"]) for row in await actions(connection)]
        return states == [("bad", "failed"), ("good", "completed")]

    async with running(Service("cdc", Publisher(settings).run), service):
        await note(connection, type="bad")
        await note(connection)
        await eventually(are_ended, "both runs have ended")
        restarts = service.restarts
    assert restarts == 0
    (bad, _) = await actions(connection)
    assert "it cannot be handled: TypeError: a defect" in str(bad["active"])


async def test_a_defect_that_all_steps_share_ends_no_run(
    settings: Settings, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the third action on nothing is set aside: the steps wait until the cause is gone."""
    original, is_broken = store.read_facts, asyncio.Event()

    async def read_facts(connection: Connection, run: Any, **options: Any) -> Any:
        if is_broken.is_set():
            raise TypeError("a defect of this version")
        return await original(connection, run, **options)

    monkeypatch.setattr(performer, "read_facts", read_facts)
    is_broken.set()
    names = [f"a{number}" for number in range(8)]
    await put(connection, "".join(action(name) + rule(f"r{name}", name) for name in names))
    service = Service("worker", Worker(settings).run)

    async def wait() -> bool:
        return "fail in the same way" in (service.problem or "")

    async def have_ended() -> bool:
        return all(row["state"] != "running" for row in await actions(connection))

    async with running(Service("cdc", Publisher(settings).run), service):
        await note(connection)
        await eventually(wait, "the worker reports the common cause")
        is_broken.clear()
        await eventually(have_ended, "all runs have ended")
    states = [row["state"] for row in await actions(connection)]
    assert states.count("failed") <= 2
    assert states.count("completed") >= 6


async def test_a_step_whose_run_cannot_be_read_becomes_a_dead_letter(
    settings: Settings, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = store.read_run

    async def read_run(connection: Connection, id: Any) -> Any:
        run = await original(connection, id)
        if run is not None and run.name == "bad":
            raise TypeError("a row that this version cannot read")
        return run

    monkeypatch.setattr(performer, "read_run", read_run)
    await put(connection, action("bad") + rule("a", "bad"))
    async with running(Service("cdc", Publisher(settings).run), Service("worker", Worker(settings).run)):
        await note(connection)

        async def is_there() -> bool:
            async with jetstream(settings) as js:
                found = await read_dead_letters(js, settings, "step", 10)
            return bool(found) and "cannot be handled" in found[0]["reason"]

        await eventually(is_there, "the step is a dead letter")
