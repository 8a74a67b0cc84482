"""`tocsin notifications`: what channels know, what fails and what is held."""

from __future__ import annotations

import asyncio

import pytest

from tests.cdc.published_records import smaller, with_long_timeouts
from tests.cli.conftest import CommandLine
from tests.rules.delivery.receivers import receiver, respond
from tests.rules.instance import Instance
from tocsin.core.bus import connect_bus
from tocsin.core.db import connect
from tocsin.core.settings import Settings

RULES = """
event_rule: {{name: hot, datapoint: t, above: 5, notify: [chat, pager]}}
---
event_rule: {{name: cold, datapoint: t, below: 1, notify: [chat]}}
---
channel: {{name: chat, webhook: {{url: "http://127.0.0.1:{up}/x"}}}}
---
channel: {{name: pager, webhook: {{url: "http://127.0.0.1:{down}/x"}}}}
"""


@pytest.fixture
def notified(settings: Settings) -> None:
    """`hot` of p1: delivered to chat, refused by the pager. `cold` of p2: silenced."""

    async def put() -> None:
        allowed = smaller(with_long_timeouts(settings), egress_allow="127.0.0.1")
        connection = await connect(allowed, "test")
        bus = await connect_bus(allowed, "test")
        async with receiver(respond()) as chat, receiver(respond(503)) as pager:
            instance = await Instance.open(allowed, connection, bus)
            await instance.rules(RULES.format(up=chat.port, down=pager.port))
            await instance.silence('rule == "cold"', "2h")
            await instance.alarm("hot", "p1")
            await instance.alarm("cold", "p2")
            assert len(chat.accepted) == 1
        await bus.close()
        await connection.close()

    asyncio.run(put())


def test_without_notifications_the_list_is_empty(tocsin: CommandLine) -> None:
    assert tocsin("notifications").out == "no alarm with a notification is open\n"
    assert tocsin("notifications", "--channel", "ops").out == "no notifications match\n"
    assert tocsin("notifications", "--json").json == []


@pytest.mark.usefixtures("notified")
def test_notifications_are_listed_and_those_that_fail_come_first(tocsin: CommandLine) -> None:
    header, failing, *others = tocsin("notifications").lines
    assert header.split() == ["ID", "CHANNEL", "STATE", "ROUTE", "ALARMS", "MESSAGES", "SINCE", "DETAIL"]
    assert failing.split()[1:3] == ["pager", "failing"]
    assert "(1 attempt): " in failing
    assert "503" in failing
    assert {tuple(line.split()[1:3]) for line in others} == {("chat", "idle"), ("chat", "held")}
    (held,) = [line for line in others if " held " in line]
    assert "held by silence:" in held
    (idle,) = [line for line in others if " idle " in line]
    assert "1 message delivered, the last at 2026-03-02T08:00:00Z" in idle


@pytest.mark.usefixtures("notified")
def test_they_are_filtered_by_state_and_channel(tocsin: CommandLine) -> None:
    (failing,) = tocsin("notifications", "--state", "failing", "--json").json
    assert (failing["channel"], failing["state"], failing["failures"]) == ("pager", "failing", 1)
    assert (failing["alarms"], failing["messages"]) == (1, 0)
    assert failing["failing_since"] == "2026-03-02T08:00:00Z"
    assert {row["state"] for row in tocsin("notifications", "--channel", "chat", "--json").json} == {
        *("idle", "held")
    }
    assert len(tocsin("notifications", "-n", "1", "--json").json) == 1
    assert tocsin("notifications", "--state", "failed").out == "no notifications match\n"
    assert tocsin("notifications", "--state", "held", "--channel", "pager", "--json").json == []


@pytest.mark.parametrize(
    ("words", "says", "code"),
    [
        (("--state", "broken"), "unknown state 'broken': use one of due, idle", 1),
        (("-n", "0"), "must be greater than or equal to 1, not '0'", 2),
        (("--limit", "many"), "must be a whole number, not 'many'", 2),
    ],
)
def test_a_refusal_names_the_value(tocsin: CommandLine, words: tuple[str, ...], says: str, code: int) -> None:
    assert says in " ".join(tocsin("notifications", *words, exit_code=code).err.split())
