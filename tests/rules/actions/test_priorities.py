"""Priorities: a worker that has more due steps than it can perform begins the urgent ones first, and no
priority waits forever."""

from __future__ import annotations

import asyncio
import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.publisher import Publisher
from rules.actions.due_steps import offered
from rules.worker import Worker
from tests.cdc.published_records import published, smaller
from tests.rules.apply.apply_setup import actions, note, put, rule
from tests.rules.delivery.receivers import Receiver, respond
from tests.rules.delivery.receivers import receiver as web_receiver
from tests.rules.documents.load.problems import problems_of
from tests.rules.instance import Instance
from tests.sql import all_rows
from tests.wait import eventually
from tocsin.core.db import Connection
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings

COUNT = 12


@given(st.integers(0, 1_000), st.integers(1, 100))
def test_of_ten_successive_places_each_priority_is_offered_one(begun: int, free: int) -> None:
    places = offered(begun, free)
    assert places.total() == free
    if free >= 10:
        assert places["normal"] >= free // 10
        assert places["low"] >= free // 10
        assert places["high"] >= free // 10 * 8


def documents(port: int) -> str:
    url = f"http://127.0.0.1:{port}"
    text = ""
    for priority in ("low", "normal", "high"):
        text += (
            f"---\naction:\n  name: {priority}-work\n  priority: {priority}\n"
            f'  webhook: {{url: "{url}/{priority}"}}\n  retry: {{attempts: 1}}\n'
        )
        text += rule(f"on-{priority}", f"{priority}-work", f'type == "{priority}"')
    slow = f'---\naction:\n  name: slow\n  webhook: {{url: "{url}/slow", timeout: 60s}}\n'
    return text + slow + "  retry: {attempts: 1}\n" + rule("on-slow", "slow", 'type == "slow"')


async def saturate(settings: Settings, connection: Connection, server: Receiver, runs: int) -> None:
    """The worker is at the slow step, and all the others are due and published."""

    async def is_saturated() -> bool:
        rows = await actions(connection)
        return len(rows) == runs and len(server.requests) == 1

    await eventually(is_saturated, "all runs have started behind the slow step", within=60)
    await published(settings, connection)


def order_of(server: Receiver) -> list[str]:
    return [request.path.removeprefix("/") for request in server.requests]


async def test_a_saturated_worker_performs_urgent_steps_first_and_starves_none(
    settings: Settings, connection: Connection
) -> None:
    go_on = asyncio.Event()

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await go_on.wait()
        await respond()(reader, writer)

    allowed = smaller(settings, egress_allow="127.0.0.1", worker_concurrency=1)
    async with web_receiver(behave) as server:
        await put(connection, documents(server.port))
        async with running(Service("cdc", Publisher(settings).run), Service("worker", Worker(allowed).run)):
            await note(connection, type="slow")
            await saturate(settings, connection, server, 1)
            for priority in ("low", "normal", "high"):
                for _ in range(COUNT):
                    await note(connection, type=priority)
            await saturate(settings, connection, server, 1 + 3 * COUNT)
            go_on.set()

            async def is_done() -> bool:
                return Counter(row["state"] for row in await actions(connection)) == {"completed": 37}

            await eventually(is_done, "all steps are performed", within=120)
    # The slow step had the first place of ten. A place that its priority has no step for goes to the
    # most urgent one that is due.
    assert order_of(server) == [
        *["slow", *["high"] * 7, "normal", "low"],
        *[*["high"] * 5, *["normal"] * 4, "low"],
        *[*["normal"] * 7, *["low"] * 10],
    ]


async def test_the_priority_of_a_run_is_part_of_its_due_steps_only(
    settings: Settings, connection: Connection
) -> None:
    """Other states keep the subject of the action, so a service that follows it misses no outcome."""
    allowed = smaller(settings, egress_allow="127.0.0.1")
    async with web_receiver(respond()) as server:
        await put(connection, documents(server.port))
        async with running(Service("cdc", Publisher(settings).run), Service("worker", Worker(allowed).run)):
            for priority in ("low", "normal", "high"):
                await note(connection, type=priority)

            async def is_done() -> bool:
                return Counter(row["state"] for row in await actions(connection)) == {"completed": 3}

            await eventually(is_done, "each is performed", within=60)
            stored = await published(settings, connection)
    prefix = f"{settings.subjects}.action."
    steps = [(m, json.loads(m.data)) for m in stored if m.subject.startswith(prefix)]
    assert Counter(
        (message.subject.removeprefix(prefix), step["state"], step.get("priority")) for message, step in steps
    ) == Counter(
        [
            *[("low-work.low", "due", "low"), ("low-work", "completed", "low")],
            *[("normal-work", "due", None), ("normal-work", "completed", None)],
            *[("high-work.high", "due", "high"), ("high-work", "completed", "high")],
        ]
    )


async def test_a_notification_has_the_priority_of_its_channel(instance: Instance) -> None:
    await instance.rules(
        "event_rule: {name: hot, datapoint: t, above: 5, notify: [pager, chat]}\n"
        '---\nchannel: {name: pager, webhook: {url: "http://127.0.0.1:1/x"}, priority: high}\n'
        '---\nchannel: {name: chat, webhook: {url: "http://127.0.0.1:1/x"}}\n'
    )
    await instance.open_alarm("hot", "p1")
    await instance.read_lane()
    rows = await all_rows(instance.connection, "select name, priority from tocsin.action order by name")
    assert rows == [
        {"name": "notify-chat", "priority": None},
        {"name": "notify-pager", "priority": "high"},
    ]


@pytest.mark.parametrize("document", ["action: {name: a, log: {message: x}", "channel: {name: a, slack: {}"])
def test_other_priorities_are_refused(document: str) -> None:
    (problem,) = [line for line in problems_of(f"{document}, priority: urgent}}") if "priority" in line]
    assert "high" in problem
