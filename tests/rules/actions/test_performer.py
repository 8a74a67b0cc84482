"""The performer as a service: several steps at once, a slow step stays with its worker, and no step is
lost or gets a second idempotency key when workers are killed."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from typing import Any

import psycopg
import pytest
from nats.aio.msg import Msg

from cdc.publisher import Publisher
from rules.actions import performer
from rules.actions.performer import Performer
from rules.actions.steps.context import StepContext
from rules.worker import Worker
from tests.cdc.published_records import smaller
from tests.rules.actions.message_receiver import receiver
from tests.rules.apply.apply_setup import actions, note, put, rule
from tests.rules.delivery.receivers import Behaviour, respond
from tests.rules.delivery.receivers import receiver as web_receiver
from tests.sql import all_rows
from tests.wait import eventually
from tocsin.core.db import Connection
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings


def patient_webhook(go_on: asyncio.Event) -> Behaviour:
    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await go_on.wait()
        await respond()(reader, writer)

    return behave


def webhook(name: str, port: int) -> str:
    return (
        f'---\naction:\n  name: {name}\n  webhook: {{url: "http://127.0.0.1:{port}/x", timeout: 60s}}\n'
        "  retry: {attempts: 1}\n"
    )


async def until_states(connection: Connection, wanted: dict[str, int], within: float = 60) -> None:
    async def are_so() -> bool:
        return Counter(row["state"] for row in await actions(connection)) == wanted

    await eventually(are_so, f"actions are {wanted}", within)


async def test_a_slow_step_does_not_delay_others(settings: Settings, connection: Connection) -> None:
    go_on = asyncio.Event()
    allowed = smaller(settings, egress_allow="127.0.0.1", worker_concurrency=2)
    async with web_receiver(patient_webhook(go_on)) as server:
        quick = "---\naction: {name: quick, log: {message: x}}\n"
        await put(
            connection,
            webhook("slow", server.port) + quick + rule("a", "slow", 'type == "slow"') + rule("b", "quick"),
        )
        async with running(Service("cdc", Publisher(settings).run), Service("worker", Worker(allowed).run)):
            await note(connection, type="slow")
            for _ in range(10):
                await note(connection)
            await until_states(connection, {"completed": 10, "running": 1})
            go_on.set()
            await until_states(connection, {"completed": 11})
    assert len(server.requests) == 1


async def test_a_step_that_takes_longer_than_the_ack_wait_stays_with_its_worker(
    settings: Settings, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ack wait is extended three times within it, so a machine that stalls for two seconds does not
    miss it."""
    go_on = asyncio.Event()
    extended: list[Msg] = []
    original = Msg.in_progress

    async def counted(self: Msg) -> None:
        extended.append(self)
        await original(self)

    monkeypatch.setattr(Msg, "in_progress", counted)
    allowed = smaller(settings, egress_allow="127.0.0.1", worker_ack_wait_s=4.0)
    async with web_receiver(patient_webhook(go_on)) as server:
        await put(connection, webhook("slow", server.port) + rule("a", "slow"))
        workers = [Service(f"worker {number}", Worker(allowed).run) for number in range(2)]
        async with running(Service("cdc", Publisher(settings).run), *workers):
            await note(connection)

            async def longer_than_the_ack_wait() -> bool:
                return len(extended) >= 6

            what = "the ack wait is extended six times"
            await eventually(longer_than_the_ack_wait, what, within=60)
            go_on.set()
            await until_states(connection, {"completed": 1})
    assert len(server.requests) == 1


async def test_the_unfinished_steps_of_a_worker_that_stops_go_to_another_at_once(
    settings: Settings, connection: Connection
) -> None:
    go_on = asyncio.Event()
    # Far longer than the test waits: only returned messages are delivered in time.
    allowed = smaller(settings, egress_allow="127.0.0.1", worker_ack_wait_s=3600.0)
    async with web_receiver(patient_webhook(go_on)) as server:
        await put(connection, webhook("slow", server.port) + rule("a", "slow"))
        async with running(Service("cdc", Publisher(settings).run), Service("worker", Worker(allowed).run)):
            await note(connection)

            async def is_asked() -> bool:
                return bool(server.requests)

            await eventually(is_asked, "the first worker is at it")
        async with running(
            Service("cdc", Publisher(settings).run), Service("perform", Performer(allowed).run)
        ):
            go_on.set()
            await until_states(connection, {"completed": 1})
    assert len({one.headers["webhook-id"] for one in server.requests}) == 1


async def test_a_step_that_failed_comes_back_long_before_the_ack_wait(
    settings: Settings, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The failure is that of a restart of Postgres."""
    original = performer.perform_step
    failures: list[bytes] = []

    async def failing_once(context: StepContext, body: bytes) -> None:
        if not failures:
            failures.append(body)
            raise psycopg.OperationalError("the server is away")
        await original(context, body)

    monkeypatch.setattr(performer, "perform_step", failing_once)
    given = smaller(settings, worker_ack_wait_s=3600.0)
    await put(connection, "---\naction: {name: quick, log: {message: x}}\n" + rule("a", "quick"))
    async with running(Service("cdc", Publisher(settings).run), Service("worker", Worker(given).run)):
        await note(connection)
        await until_states(connection, {"completed": 1})
    assert len(failures) == 1


async def reject_updates(connection: Connection, condition: str, error: str) -> None:
    """Postgres rejects outcomes of steps."""
    await connection.execute(
        f"create or replace function public.reject() returns trigger language plpgsql as $$ begin"
        f" if {condition} then raise {error}; end if; return new; end $$".encode()
    )
    await connection.execute(
        "create or replace trigger reject before update on tocsin.action"
        " for each row execute function public.reject()"
    )


async def wait_for_problem(service: Service, part: str) -> None:
    async def is_reported() -> bool:
        return part in (service.problem or "")

    await eventually(is_reported, f"the service reports {part!r}")


def quick_rules(*names: str) -> str:
    quick = "---\naction: {name: quick, log: {message: x}}\n"
    return quick + "".join(rule(name, "quick", f'type == "{name}"') for name in names)


async def test_a_missing_right_delays_steps_and_fails_none(
    settings: Settings, connection: Connection
) -> None:
    await put(connection, quick_rules("a", "b"))
    await reject_updates(connection, "true", "insufficient_privilege")
    worker = Service("worker", Worker(settings).run)
    async with running(Service("cdc", Publisher(settings).run), worker):
        await note(connection, type="a")
        await note(connection, type="b")
        await wait_for_problem(worker, "InsufficientPrivilege")
        await connection.execute("drop trigger reject on tocsin.action")
        await until_states(connection, {"completed": 2})
        assert worker.restarts == 0


async def test_an_outcome_that_cannot_be_stored_fails_its_own_run_and_no_other(
    settings: Settings, connection: Connection
) -> None:
    await put(connection, quick_rules("a", "b"))
    await reject_updates(connection, "new.state = 'completed' and new.action_rule = 'a'", "check_violation")
    worker = Service("worker", Worker(settings).run)
    async with running(Service("cdc", Publisher(settings).run), worker):
        for _ in range(5):
            await note(connection, type="a")
        await note(connection, type="b")
        await until_states(connection, {"completed": 1, "failed": 5})
        assert worker.restarts == 0
    assert all(
        "its outcome cannot be stored" in row["error"]
        for row in await actions(connection)
        if row["state"] == "failed"
    )


async def test_outcomes_of_different_rules_that_fail_in_the_same_way_wait_for_the_cause(
    settings: Settings, connection: Connection
) -> None:
    names = [f"rule-{number}" for number in range(6)]
    await put(connection, quick_rules(*names))
    await reject_updates(connection, "new.state = 'completed'", "check_violation")
    worker = Service("worker", Worker(settings).run)
    async with running(Service("cdc", Publisher(settings).run), worker):
        for name in names:
            await note(connection, type=name)
        await wait_for_problem(worker, "steps of different rules fail in the same way")
        await connection.execute("drop trigger reject on tocsin.action")
        await until_states(connection, {"completed": 4, "failed": 2})


RUNBOOK = """
action:
  name: book
  steps:
    - publish: {subject: received.NAMESPACE.0, payload: {action: first}}
    - parallel:
        - [publish: {subject: received.NAMESPACE.2}]
        - - publish: {subject: received.NAMESPACE.3}
          - publish: {subject: received.NAMESPACE.4}
    - publish: {subject: received.NAMESPACE.5}
"""
STEPS = {0, 1, 2, 3, 4, 5}


def environment(settings: Settings) -> dict[str, str]:
    given = settings.model_dump(include={"postgres", "nats", "namespace", "worker_ack_wait_s", "lease_ttl_s"})
    return {**os.environ, **{f"TOCSIN_{name.upper()}": str(value) for name, value in given.items()}}


async def die_often(settings: Settings, deaths: int) -> None:
    """Workers that die by themselves, one after the other."""
    for seed in range(deaths):
        worker = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.rules.crashing_worker",
            str(seed),
            env=environment(settings),
            stdout=asyncio.subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(60):
                assert await worker.wait() == -9, "it was to die by its own hand"
        finally:
            if worker.returncode is None:
                worker.kill()
                await worker.wait()


async def test_runbooks_survive_workers_that_die_between_effect_and_outcome(
    settings: Settings, short_lease: Settings, connection: Connection
) -> None:
    await put(connection, RUNBOOK.replace("NAMESPACE", settings.namespace) + rule("each", "book"))
    async with receiver(settings) as server, running(Service("cdc", Publisher(settings).run)):
        for _ in range(20):
            await note(connection)
        await die_often(short_lease, deaths=3)
        async with running(Service("worker", Worker(short_lease).run)):
            await until_states(connection, {"completed": 20})
    starts = Counter(row["event_id"] for row in await actions(connection))
    assert set(starts.values()) == {1}
    per_step = await all_rows(
        connection,
        "select action_id, step, count(*) filter (where state = 'completed') as completed,"
        " count(*) filter (where state = 'due') as due from tocsin.action_step group by 1, 2",
    )
    assert {(row["completed"], row["due"]) for row in per_step} == {(1, 1)}
    assert len(per_step) == 20 * len(STEPS)
    assert_delivered(server, await actions(connection))


def assert_delivered(server: Any, ran: list[dict[str, Any]]) -> None:
    """Every step that reaches out was delivered at least once, each time with its one key."""
    delivered = {
        (message.subject.rpartition(".")[2], key)
        for message, key in zip(server.messages, server.keys, strict=True)
    }
    assert delivered == {(str(step), f"{row['id']}/{step}") for row in ran for step in STEPS - {1}}
    assert len(server.messages) > len(delivered), "a worker died after an effect"
