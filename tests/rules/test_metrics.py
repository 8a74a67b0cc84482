"""The metrics of a worker: committed work is counted once, and rejected messages too."""

from __future__ import annotations

import json

import pytest
from nats.aio.client import Client

from rules.actions.performer import perform_step
from rules.delivery.deliver import deliver
from rules.delivery.message import Message
from rules.lanes.batch import Writes
from rules.lanes.data_lane import DataBatch
from rules.metrics import WORKER
from schemas.documents.targets import WebhookTarget
from schemas.wire.subjects import datapoint_subject
from tests.clock.clock_setup import T0
from tests.metrics.scrapes import Counted
from tests.rules.actions.performed_steps import egress_of, step_context
from tests.rules.apply.apply_setup import action, event_bodies, note, put, rule, step_bodies
from tests.rules.delivery.receivers import receiver, respond
from tests.rules.dispatch.dispatch_setup import dispatch
from tests.rules.lanes.lane_setup import jetstream, lane_worker, make_stream
from tests.wait import eventually
from tocsin.core.bus import connect_bus
from tocsin.core.db import Connection
from tocsin.core.errors import Conflict
from tocsin.core.service import running
from tocsin.core.settings import Settings


class ConflictTwice(Writes):
    def __init__(self) -> None:
        self.tries = 0

    async def plan(self, connection: Connection, batch: DataBatch) -> Writes:
        return self

    async def write_timers(self, connection: Connection) -> None:
        self.tries += 1
        if self.tries <= 2:
            raise Conflict("another transaction was faster")


async def test_datapoints_count_once_however_often_their_batch_is_planned(settings: Settings) -> None:
    await make_stream(settings)
    counted = Counted(WORKER)
    overtaken = ConflictTwice()
    batch = [{"key": "a", "value": 1}, {"key": "b", "value": 2}, {"key": "c", "value": None}]
    async with jetstream(settings) as js:
        subject = datapoint_subject(settings.subjects, "plant-7", "_")
        await js.publish(subject, json.dumps({"batch": batch}).encode())
        await js.publish(subject, b"no json")

    async def are_read() -> bool:
        return counted("tocsin_lane_messages_total", lane="data") == 2

    async with running(lane_worker("one", settings, overtaken)):
        await eventually(are_read, "both messages are read")
    assert overtaken.tries > 2
    assert counted("tocsin_datapoints_total", outcome="stored") == 2
    assert counted("tocsin_datapoints_total", outcome="rejected") == 2
    assert counted("tocsin_dead_letters_total", kind="datapoint") >= 2, (
        "sent again before the batch committed"
    )
    assert counted("tocsin_lane_batch_seconds_count", lane="data") >= 1


@pytest.mark.parametrize(
    ("said", "outcome"), [("all is well", "completed"), ("{{ payload.missing.deep }}", "failed")]
)
async def test_steps_and_actions_are_counted_by_outcome(
    settings: Settings, connection: Connection, said: str, outcome: str
) -> None:
    await put(connection, action("tell", said) + rule("each", "tell"))
    await note(connection)
    assert await dispatch(settings, connection, await event_bodies(connection)) == 1
    (body,) = await step_bodies(connection)
    counted = Counted(WORKER)
    bus: Client = await connect_bus(settings, "test")
    try:
        context = step_context(settings, connection, bus)
        assert await perform_step(context, body)
        assert not await perform_step(context, body), "its outcome is committed already"
    finally:
        await bus.close()
    assert counted("tocsin_steps_total", kind="log", outcome=outcome) == 1
    assert counted("tocsin_step_seconds_count", kind="log") == 1
    assert counted("tocsin_actions_ended_total", state=outcome) == 1


async def test_deliveries_are_counted_by_target_and_outcome(settings: Settings) -> None:
    counted = Counted(WORKER)
    trusting = egress_of(settings.model_copy(update={"egress_allow": "127.0.0.1"}))
    async with receiver(respond(204, b"")) as server:
        target = WebhookTarget.model_validate({"url": f"http://127.0.0.1:{server.port}/hook"})
        for egress in (trusting, egress_of(settings)):
            await deliver(egress, target, Message("hot", "65.2 °C"), key="k", now=T0)
    assert counted("tocsin_deliveries_total", target="webhook", outcome="delivered") == 1
    assert counted("tocsin_deliveries_total", target="webhook", outcome="permanent") == 1
