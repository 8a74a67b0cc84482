"""A step that is due is done, its outcome is recorded once, and what can never succeed fails with
its reason."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client
from nats.errors import Error as NatsError

from rules.actions.performer import perform_step
from rules.actions.retry import retry_run
from rules.actions.steps.context import StepContext
from tests.cdc.published_records import smaller
from tests.rules.actions.message_receiver import receiver
from tests.rules.actions.performed_steps import after_the_effect, step_context
from tests.rules.apply.apply_setup import (
    T0,
    action,
    actions,
    event_bodies,
    note,
    publish_action,
    put,
    rows,
    rule,
    step_bodies,
)
from tests.rules.dispatch.dispatch_setup import dispatch
from tocsin.core.audit import Actor
from tocsin.core.bus import connect_bus
from tocsin.core.db import Connection
from tocsin.core.errors import Refused, Unreachable
from tocsin.core.settings import Settings
from tocsin.embedded import Nats, embedded_nats


@pytest.fixture
def context(settings: Settings, connection: Connection, bus: Client) -> StepContext:
    return step_context(settings, connection, bus)


@pytest.fixture
def own_nats(tmp_path: Path) -> Iterator[Nats]:
    with embedded_nats(tmp_path) as started:
        yield started


async def start(settings: Settings, connection: Connection, document: str, **event: Any) -> bytes:
    """Apply the action `tell`, start it, and return the body of its step."""
    await put(connection, document + rule("each", "tell"))
    await note(connection, **event)
    assert await dispatch(settings, connection, await event_bodies(connection)) == 1
    (body,) = await step_bodies(connection)
    return body


async def failure(
    settings: Settings, connection: Connection, context: StepContext, document: str, **event: Any
) -> str:
    body = await start(settings, connection, document, **event)
    assert await perform_step(context, body)
    (row,) = await actions(connection)
    assert row["state"] == "failed"
    assert row["ended_at"] is not None
    steps = await rows(connection, "action_step")
    assert [step["state"] for step in steps] == ["due", "failed"]
    assert steps[1]["result"] == row["result"] == {"error": row["error"]}
    return str(row["error"])


async def test_a_log_action_is_completed_with_its_text(
    settings: Settings, connection: Connection, context: StepContext
) -> None:
    body = await start(
        settings, connection, action("tell", "{{ owner }} said {{ payload.k }}"), owner="a", payload={"k": 7}
    )
    assert await perform_step(context, body)
    (row,) = await actions(connection)
    assert (row["state"], row["result"], row["error"]) == ("completed", {"message": "a said 7"}, None)
    due, completed = await rows(connection, "action_step")
    assert (due["state"], completed["state"]) == ("due", "completed")
    assert (completed["action_id"], completed["step"], completed["attempt"]) == (row["id"], 0, 1)
    assert completed["result"] == {"message": "a said 7"}
    assert completed["source_event_id"] == row["event_id"]


async def test_a_message_is_published_with_the_idempotency_key(
    settings: Settings, connection: Connection, context: StepContext
) -> None:
    subject = f"received.{settings.namespace}.{{{{ owner }}}}"
    document = publish_action("tell", subject, '{event: "{{ id }}", n: "{{ payload.n }}", at: "{{ ts }}"}')
    body = await start(settings, connection, document, owner="plant 7", payload={"n": [1, None]})
    async with receiver(settings) as received:
        assert await perform_step(context, body)
        await received.wait_for(1)
    (message,), (row,) = received.messages, await actions(connection)
    assert message.subject == f"received.{settings.namespace}.plant%207"
    assert json.loads(message.data) == {
        "event": str(row["event_id"]),
        "n": [1, None],
        "at": "2026-03-02T08:00:00Z",
    }
    assert message.headers is not None
    assert received.keys == [f"{row['id']}/0"]
    # A producer that could compute it could take the place of the message in a stream.
    assert re.fullmatch("[0-9a-f]{32}", message.headers["Nats-Msg-Id"])
    assert (row["state"], row["result"]) == ("completed", {"subject": message.subject})


async def test_a_second_performer_changes_nothing(
    settings: Settings, connection: Connection, context: StepContext
) -> None:
    body = await start(settings, connection, publish_action("tell", f"received.{settings.namespace}.x"))
    async with receiver(settings) as received:
        assert await perform_step(context, body)
        before = [await actions(connection), await rows(connection, "action_step")]
        assert not await perform_step(context, body)
        await context.nats.publish(f"received.{settings.namespace}.marker", b"")
        await received.wait_for(2)
    assert [message.subject.rpartition(".")[2] for message in received.messages] == ["x", "marker"]
    assert [await actions(connection), await rows(connection, "action_step")] == before


async def test_of_two_performers_at_the_same_step_one_records_the_outcome(
    settings: Settings, connection: Connection, context: StepContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = publish_action("tell", f"received.{settings.namespace}.x")
    body = await start(settings, connection, document)
    results: list[bool] = []

    async def the_other_does_it_all() -> None:
        results.append(await perform_step(context, body))

    after_the_effect(monkeypatch, "publish", the_other_does_it_all)
    async with receiver(settings) as received:
        results.append(await perform_step(context, body))
        await received.wait_for(2)
    assert results == [True, False]
    assert len(set(received.keys)) == 1
    assert [row["state"] for row in await rows(connection, "action_step")] == ["due", "completed"]


@pytest.mark.parametrize(
    "moved",
    [
        """active = '{"0": {"attempt": 2, "state": "due"}}'""",
        """active = '{"1": {"attempt": 1, "state": "due"}}'""",
        """active = '{"0": {"attempt": 1, "state": "waiting"}}'""",
        "state = 'cancelled'",
    ],
)
async def test_an_outcome_is_rejected_when_the_run_has_changed(
    settings: Settings,
    connection: Connection,
    context: StepContext,
    monkeypatch: pytest.MonkeyPatch,
    moved: str,
) -> None:
    body = await start(settings, connection, action("tell"))

    async def move() -> None:
        await connection.execute(f"update tocsin.action set version = version + 1, {moved}")

    after_the_effect(monkeypatch, "log", move)
    assert not await perform_step(context, body)
    assert [row["result"] for row in await actions(connection)] == [None]
    assert [row["state"] for row in await rows(connection, "action_step")] == ["due"]


@pytest.mark.parametrize(
    "foreign",
    [b"", b"{}", b"not json", b'{"specversion": "1.0", "state": "due"}'],
)
async def test_a_message_that_is_not_a_step_is_skipped(
    settings: Settings, connection: Connection, context: StepContext, foreign: bytes
) -> None:
    assert not await perform_step(context, foreign)


@pytest.mark.parametrize(
    "changed",
    [
        {"state": "completed"},
        {"attempt": 2},
        {"step": 1},
        {"actionid": "11111111-1111-4111-8111-111111111111"},
    ],
)
async def test_only_the_step_that_is_due_is_performed(
    settings: Settings, connection: Connection, context: StepContext, changed: dict[str, Any]
) -> None:
    body = {**json.loads(await start(settings, connection, action("tell"))), **changed}
    assert not await perform_step(context, json.dumps(body).encode())
    assert [row["state"] for row in await actions(connection)] == ["running"]


async def test_a_template_that_cannot_be_filled_fails_the_action(
    settings: Settings, connection: Connection, context: StepContext
) -> None:
    error = await failure(settings, connection, context, action("tell", "{{ payload.missing }}"))
    assert "payload.missing" in error


async def test_a_run_whose_event_was_removed_fails(
    settings: Settings, connection: Connection, context: StepContext
) -> None:
    body = await start(settings, connection, action("tell"))
    await connection.execute("delete from tocsin.event")
    assert await perform_step(context, body)
    (row,) = await actions(connection)
    assert (row["state"], row["error"]) == (
        "failed",
        "the event that started this run is no longer in the log",
    )
    with pytest.raises(Refused, match="cannot run again: the event that started this run is no longer in"):
        await retry_run(connection, row["id"], Actor("ann", "test", T0))
    (row,) = await actions(connection)
    assert row["state"] == "failed"


async def test_a_document_that_this_version_cannot_read_fails_the_action(
    settings: Settings, connection: Connection, context: StepContext
) -> None:
    body = await start(settings, connection, action("tell"))
    await connection.execute("update tocsin.action set document = %s", ('{"name": "tell", "fax": {}}',))
    assert await perform_step(context, body)
    assert [row["state"] for row in await actions(connection)] == ["failed"]


async def test_a_message_larger_than_nats_accepts_fails_the_action(
    settings: Settings, connection: Connection, context: StepContext
) -> None:
    whole = ", ".join(f'k{n}: "{{{{ payload.t }}}}"' for n in range(6))
    document = publish_action("tell", f"received.{settings.namespace}.x", f"{{{whole}}}")
    error = await failure(settings, connection, context, document, payload={"t": "x" * 200_000})
    assert "nats accepts 1048576" in error
    assert context.nats.is_connected


async def test_a_text_larger_than_the_log_keeps_is_cut_in_the_result(
    settings: Settings, connection: Connection, context: StepContext
) -> None:
    text = "{{ payload.t }}{{ payload.t }}"
    body = await start(settings, connection, action("tell", text), payload={"t": "x" * 200_000})
    assert await perform_step(context, body)
    (row,) = await actions(connection)
    assert (row["state"], len(row["result"]["message"])) == ("completed", 4000)


async def test_a_subject_longer_than_nats_accepts_fails_the_action(
    settings: Settings, connection: Connection, context: StepContext
) -> None:
    document = publish_action("tell", "received.{{ payload.t }}")
    error = await failure(settings, connection, context, document, payload={"t": "x" * 5000})
    assert "has 5009 characters" in error


@pytest.mark.parametrize("first", ["NAMESPACE", "tocsin", "_INBOX"])
async def test_no_value_can_lead_a_message_into_the_record_stream(
    settings: Settings, connection: Connection, context: StepContext, first: str
) -> None:
    owner = first.replace("NAMESPACE", settings.namespace)
    document = publish_action("tell", "{{ owner }}.v1.event.caused.noted.x.y")
    assert owner in await failure(settings, connection, context, document, owner=owner)


async def test_an_outage_of_nats_leaves_the_step_due_for_the_next_time(
    settings: Settings, connection: Connection, own_nats: Nats, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rules.actions.steps.publish.FLUSH_TIMEOUT_S", 0.2)
    there = smaller(settings, nats=own_nats.url)
    body = await start(there, connection, publish_action("tell", f"received.{settings.namespace}.x"))
    away = await connect_bus(there, "test")
    own_nats.kill()
    with pytest.raises((NatsError, Unreachable, OSError)):
        await perform_step(step_context(there, connection, away), body)
    with suppress(OSError):
        await away.close()
    assert [row["state"] for row in await actions(connection)] == ["running"]
    own_nats.start()
    back = await connect_bus(there, "test")
    async with receiver(there) as received:
        assert await perform_step(step_context(there, connection, back), body)
        await received.wait_for(1)
    await back.close()
    assert [row["state"] for row in await actions(connection)] == ["completed"]
