"""`tocsin actions`, `history` and `stats`: runs are listed, shown, retried and cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from tests.cdc.published_records import with_long_timeouts
from tests.cli.conftest import CommandLine
from tests.rules.apply.apply_setup import rule
from tests.rules.instance import Instance
from tests.sql import all_rows
from tocsin.core.bus import connect_bus
from tocsin.core.db import connect
from tocsin.core.settings import Settings

T = TypeVar("T")

FAILING = """
- name: first
  log: {message: fine}
- name: second
  retry: {attempts: 2, initial_interval: 10s, jitter: 0}
  record: {key: k, value: 1}
"""


def play(settings: Settings, scenario: Callable[[Instance], Awaitable[T]]) -> T:
    async def run() -> T:
        connection = await connect(with_long_timeouts(settings), "test")
        bus = await connect_bus(settings, "test")
        try:
            return await scenario(await Instance.open(settings, connection, bus))
        finally:
            await bus.close()
            await connection.close()

    return asyncio.run(run())


async def failed_run(instance: Instance) -> str:
    """A run that completes its first step, and whose second step fails twice."""
    await instance.runbook(FAILING)
    await instance.event(owner="shop")
    await instance.pass_time("1h")
    return str((await instance.action())["id"])


def test_runs_are_listed_with_their_state_attempts_and_error(tocsin: CommandLine, settings: Settings) -> None:
    id = play(settings, failed_run)
    (row,) = tocsin("actions", "--json").json
    assert (row["id"], row["name"], row["rule"], row["owner"]) == (id, "book", "each", "shop")
    assert (row["state"], row["attempts"]) == ("failed", 2)
    header, line = tocsin("actions", "--state", "dead").lines
    assert header.split() == ["ID", "ACTION", "STATE", "RULE", "STARTED", "DURATION", "ATTEMPTS", "ERROR"]
    assert line.startswith(f"{id[:8]}  shop/book  failed  each")
    assert "10.0 s" in line
    assert "the data stream does not exist" in line
    assert tocsin("actions", "--state", "running").out == "no runs match\n"
    assert tocsin("actions", "--owner", "other").out == "no runs match\n"
    assert tocsin("actions", "--action", "other", "--json").json == []
    assert "use one of gathering, queued" in tocsin("actions", "--state", "lost", exit_code=1).err


def test_a_run_is_shown_with_every_attempt_of_every_step(tocsin: CommandLine, settings: Settings) -> None:
    id = play(settings, failed_run)
    shown = tocsin("actions", "show", id[:8])
    assert "  state        failed" in shown.lines
    assert [line.split()[:5] for line in shown.lines[-3:]] == [
        ["0", "first", "log", "1", "completed"],
        ["1", "second", "record", "1", "waiting"],
        ["1", "second", "record", "2", "failed"],
    ]
    steps = tocsin("actions", "show", id, "--json").json["steps"]
    assert [(step["step"], step["attempt"], step["took_ms"]) for step in steps] == [
        (0, 1, 0),
        (1, 1, None),
        (1, 2, 0),
    ]
    assert steps[1]["result"]["error"] == "the data stream does not exist: `tocsin run worker` creates it"
    assert "there is no action 'ffffffff'" in tocsin("actions", "show", "ffffffff", exit_code=1).err
    assert "is not the id of an action" in tocsin("actions", "show", "xyz", exit_code=1).err


def test_a_dead_run_is_retried_and_audited(tocsin: CommandLine, settings: Settings) -> None:
    id = play(settings, failed_run)
    assert tocsin("actions", "retry", id[:8], "--by", "ann").out == (
        f"run {id[:8]} of action 'book' starts again with step 1\n"
    )
    (row,) = tocsin("actions", "--json").json
    assert (row["state"], row["attempts"], row["error"]) == ("running", 3, None)
    assert f"action {id} is running" in tocsin("actions", "retry", id, exit_code=1).err
    (audit,) = [row for row in tocsin("audit", "--json").json if row["verb"] == "retry"]
    assert (audit["who"], audit["verb"], audit["name"], audit["new"]) == ("ann", "retry", "book", {"id": id})


def test_an_active_run_is_cancelled_once(tocsin: CommandLine, settings: Settings) -> None:
    async def waiting_run(instance: Instance) -> str:
        await instance.runbook("- wait: {for: 1h}")
        await instance.event()
        return str((await instance.action())["id"])

    id = play(settings, waiting_run)
    assert tocsin("actions", "cancel", id, "--by", "bob").out == f"cancelled run {id[:8]} of action 'book'\n"
    (row,) = tocsin("history", "--json").json
    assert (row["state"], row["error"]) == ("cancelled", "cancelled by bob")
    assert tocsin("timers", "--json").json == []
    assert "has ended as cancelled" in tocsin("actions", "cancel", id, exit_code=1).err
    assert "only one that failed or timed out" in tocsin("actions", "retry", id, exit_code=1).err


def test_history_and_stats_show_how_runs_ended(tocsin: CommandLine, settings: Settings) -> None:
    async def several(instance: Instance) -> None:
        await failed_run(instance)
        await instance.rules(
            "action:\n  name: good\n  steps: [{wait: {for: 4s}}]\n" + rule("other", "good", 'type == "good"')
        )
        await instance.event("good")
        await instance.event("good")
        await instance.pass_time("1m")
        await instance.event("good")

    play(settings, several)
    assert [row["state"] for row in tocsin("history", "--json").json] == ["completed", "completed", "failed"]
    assert [row["name"] for row in tocsin("history", "--limit", "1", "--json").json] == ["good"]
    assert tocsin("history", "--since", "2030-01-01T00:00Z").out == "no runs match\n"
    assert "is neither a duration" in tocsin("history", "--since", "soon", exit_code=1).err
    assert (
        "`tocsin actions --state running` lists those"
        in tocsin("history", "--state", "running", exit_code=1).err
    )
    found = tocsin("stats", "--json").json
    assert (found["total"], found["states"], found["average_ms"]) == (
        4,
        {"failed": 1, "completed": 2, "running": 1},
        4000,
    )
    assert found["rules"]["other"] == {
        "total": 3,
        "states": {"completed": 2, "running": 1},
        "average_ms": 4000,
    }
    lines = [line.split() for line in tocsin("stats").lines]
    assert lines[1] == ["all", "4", "1", "2", "1", "0", "0", "0", "4.0", "s"]
    assert [line[0] for line in lines[2:]] == ["each", "other"]


def test_stats_without_runs(tocsin: CommandLine) -> None:
    assert tocsin("stats").out == "no action has run\n"
    assert tocsin("stats", "--json").json == {"total": 0, "states": {}, "average_ms": None, "rules": {}}


@pytest.mark.parametrize("kind", ["at", "every"])
def test_a_schedule_shows_the_result_of_its_own_action(
    tocsin: CommandLine, settings: Settings, kind: str
) -> None:
    recurrence = {"at": 'at: "2026-03-02T08:00:10Z"', "every": "every: 10s"}[kind]

    async def own(instance: Instance) -> str:
        await instance.rules(
            f"schedule:\n  name: report\n  {recurrence}\n  owner: shop\n  action: book\n---\n"
            "action: {name: book, record: {key: k, value: 1}, retry: {attempts: 2, initial_interval: 1s, jitter: 0}}\n"
        )
        await instance.pass_time("15s")
        (row,) = await all_rows(instance.connection, "select status from tocsin.schedule")
        return str(row["status"])

    assert play(settings, own) == {"at": "failed", "every": "active"}[kind]
    shown = tocsin("schedule", "show", "report", "--owner", "shop")
    assert "  last result  failed in 1.0 s after 2 attempts: the data stream does not exist" in shown.out
    result = tocsin("schedule", "show", "report", "--owner", "shop", "--json").json["last_result"]
    assert (result["state"], result["attempts"], result["took_ms"]) == ("failed", 2, 1000)
    assert "failed in 1.0 s after 2 attempts" in tocsin("schedules").lines[1]


def test_a_one_shot_whose_dead_run_is_retried_has_fired_after_all(
    tocsin: CommandLine, settings: Settings
) -> None:
    async def own(instance: Instance) -> str:
        await instance.rules(
            'schedule:\n  name: report\n  at: "2026-03-02T08:00:10Z"\n  action: book\n---\n'
            "action: {name: book, record: {key: k, value: 1}, retry: {attempts: 1}}\n"
        )
        await instance.pass_time("15s")
        return str((await instance.action())["id"])

    id = play(settings, own)
    assert tocsin("schedule", "show", "report", "--json").json["status"] == "failed"
    tocsin("actions", "retry", id)
    assert tocsin("schedule", "show", "report", "--json").json["status"] == "fired"
