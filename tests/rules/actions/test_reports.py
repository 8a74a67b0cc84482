"""Reports over NATS and in SQL: each counts once, and one that can never count becomes a dead
letter."""

from __future__ import annotations

import json
from uuid import UUID, uuid4

import psycopg
import pytest

from rules.actions.reports import ReportConsumer, report_stream_config, take_report
from rules.lanes.dead_letters import read_dead_letters
from tests.roles.owned_database import as_role
from tests.rules.instance import Instance
from tests.rules.lanes.lane_setup import jetstream
from tests.wait import eventually
from tocsin.client import InvalidInput, report_completed, report_failed
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings
from tocsin.core.streams import ensure


async def dispatched(instance: Instance, settings: Settings) -> str:
    await instance.runbook(f"- dispatch: {{subject: received.{settings.namespace}.x, within: 1h}}")
    await instance.event()
    return str((await instance.action())["id"])


async def token_of(instance: Instance, action: str, step: int = 0) -> str:
    cursor = await instance.connection.execute("select tocsin.report_token(%s, %s)", (action, step))
    row = await cursor.fetchone()
    assert row is not None
    return str(row[0])


async def test_a_report_over_nats_completes_the_step_once_however_often_it_comes(
    instance: Instance, settings: Settings
) -> None:
    action = await dispatched(instance, settings)
    subject = f"{settings.subjects}.report.{action}.0.{await token_of(instance, action)}"
    body = json.dumps({"state": "completed", "result": {"files": 7}}).encode()
    async with jetstream(settings) as js:
        await ensure(js, report_stream_config(settings))
        await js.publish(subject, body)
        await js.publish(subject, body)
        async with running(Service("reports", ReportConsumer(settings).run)):

            async def are_taken() -> bool:
                consumers = await js.consumers_info(settings.report_stream)
                return [one.ack_floor and one.ack_floor.stream_seq for one in consumers] == [2]

            await eventually(are_taken, "both reports are taken")
    # Reported by a session on real time: the timer lies beyond the instance's instant.
    await instance.connection.execute("update tocsin.timer set fire_at = tocsin.instant()")
    await instance.fire()
    await instance.drain()
    row = await instance.action()
    assert (row["state"], row["result"]) == ("completed", {"files": 7})
    assert await instance.history() == ["0s 0 waiting", "0s 0 completed"]
    assert not await take_report(instance.connection, subject, body)


@pytest.mark.parametrize(
    ("subject", "body", "reason"),
    [
        ("ACTION.0", b"not json", "the body is not JSON ("),
        ("ACTION.0", b'{"state": "done"}', "state must be 'completed' or 'failed', not 'done'"),
        ("ACTION.0", b'{"state": "completed", "result": []}', "result must be an object, not []"),
        (
            "ACTION.0",
            b'{"state": "completed", "result": {"k": "\\u0000"}}',
            "result.k holds the character U+0000",
        ),
        ("ACTION.7", b'{"state": "completed"}', "has no step 7 that was reached"),
        ("ACTION.x", b'{"state": "completed"}', "names no step"),
        ("none.0", b'{"state": "completed"}', "names no step"),
        (
            "00000000-0000-4000-8000-000000000000.0",
            b'{"state": "completed"}',
            "has no step 0 that was reached",
        ),
    ],
)
async def test_a_report_that_can_never_count_is_rejected_with_its_reason(
    instance: Instance, settings: Settings, subject: str, body: bytes, reason: str
) -> None:
    action = await dispatched(instance, settings)
    where = (
        f"{settings.subjects}.report.{subject.replace('ACTION', action)}.{await token_of(instance, action)}"
    )
    with pytest.raises(InvalidInput) as refused:
        await take_report(instance.connection, where, body)
    assert reason in str(refused.value)


async def test_a_rejected_report_is_a_dead_letter_and_does_not_delay_others(
    instance: Instance, settings: Settings
) -> None:
    action = await dispatched(instance, settings)
    async with jetstream(settings) as js:
        await ensure(js, report_stream_config(settings))
        for step in (7, 0):
            token = await token_of(instance, action, step)
            await js.publish(f"{settings.subjects}.report.{action}.{step}.{token}", b'{"state": "completed"}')
        async with running(Service("reports", ReportConsumer(settings).run)):

            async def is_armed() -> bool:
                return await instance.timers() == 2

            await eventually(is_armed, "the good report is taken")
        (letter,) = await read_dead_letters(js, settings, "report", limit=10)
    assert "has no step 7 that was reached" in letter["reason"]


async def test_a_report_commits_with_the_work_of_its_transaction_or_not_at_all(
    instance: Instance, settings: Settings
) -> None:
    action, connection = UUID(await dispatched(instance, settings)), instance.connection
    async with connection.transaction(force_rollback=True):
        assert await report_completed(connection, action, 0)
    assert await instance.timers() == 1
    async with connection.transaction():
        with pytest.raises(InvalidInput, match="that was reached"):
            await report_failed(connection, uuid4(), 0, "no")
        assert await report_failed(connection, action, 0, "disk full", attempt=1)
    assert await instance.timers() == 2


async def test_the_function_rejects_invalid_reports(instance: Instance, settings: Settings) -> None:
    action = await dispatched(instance, settings)
    for given in (
        "'done'",
        "null",
        "'completed', '[]'",
        "'completed', jsonb_build_object('k', repeat('x', 70000))",
    ):
        with pytest.raises(psycopg.Error) as refused:
            await instance.connection.execute(f"select tocsin.report('{action}', 0, {given})".encode())
        assert refused.value.sqlstate == "TS002"


async def test_a_producer_that_knows_the_ids_cannot_report_for_the_service(
    instance: Instance, settings: Settings
) -> None:
    """The ids of runs and steps follow from the event and the rule, so a stranger can compute them."""
    action = await dispatched(instance, settings)
    for subject in (
        f"{action}.0",
        f"{action}.0.",
        f"{action}.0.{'0' * 32}",
        f"{action}.0.{await token_of(instance, action, 1)}",
    ):
        with pytest.raises(InvalidInput):
            await take_report(
                instance.connection, f"{settings.subjects}.report.{subject}", b'{"state": "completed"}'
            )
    assert await instance.timers() == 1


async def test_a_service_reports_with_the_token_of_the_message_or_for_its_own_owners(
    instance: Instance, settings: Settings
) -> None:
    action = UUID(await dispatched(instance, settings))
    token = await token_of(instance, str(action))
    client = await as_role(settings, "tocsin_client")
    with pytest.raises(psycopg.DatabaseError, match="has no grant for owner"):
        await report_completed(client, action, 0)
    with pytest.raises(InvalidInput, match="the token of the report is not that of step 0"):
        await report_completed(client, action, 0, token="0" * 32)
    assert await report_completed(client, action, 0, token=token)
    await instance.connection.execute(
        "insert into tocsin.owner_grant (grantee, pattern) values ('tocsin_client', '*')"
    )
    assert await report_failed(client, action, 0, "disk full")
    await client.close()


async def test_no_role_but_the_worker_reads_tokens(settings: Settings) -> None:
    for role in ("tocsin_client", "tocsin_reader", "tocsin_operator", "tocsin_author", "tocsin_cdc"):
        session = await as_role(settings, role)
        for query in (
            "select tocsin.report_token(gen_random_uuid(), 0)",
            "select tocsin.message_token(gen_random_uuid(), 0)",
            "select from tocsin.instance_key",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                await session.execute(query.encode())
        await session.close()
