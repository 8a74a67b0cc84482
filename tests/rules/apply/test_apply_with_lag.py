"""An apply with a large backlog, or with many changes: the lanes continue, and it stays all or nothing."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from rules.alarms.over_series import OwnerWatermark, SeriesBatch, plan_batch
from rules.apply import ApplyResult, alarms, apply, backlog, limits, preview, staleness, transaction
from rules.apply.backlog import OverdueOwner, Progress, read_backlog
from rules.documents.load import load_text
from rules.documents.rule_book import newest_rules
from tests.clock.clock_setup import at
from tests.rules.apply.apply_setup import ACTOR
from tests.rules.apply.watched_series import OTHER, QUIET, watched
from tests.rules.replay.backtest.recorded_instance import RecordedInstance, replayed
from tests.sessions import Sessions
from tests.sql import all_rows, blocked, one_row
from tests.wait import eventually
from tocsin.core.db import Connection
from tocsin.core.errors import Refused
from tocsin.core.settings import Settings

OWNERS = [f"plant-{number}" for number in range(12)]
DEADLINE = 11.0


@pytest.fixture
async def live(settings: Settings, sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> RecordedInstance:
    """Twelve owners without data since long before the watermark, and no clock; three checks make a chunk."""
    for module in (backlog, staleness):
        monkeypatch.setattr(module, "MAX_OVERDUE", 2)
    for module in (alarms, backlog, staleness):
        monkeypatch.setattr(module, "_CHUNK", 3)
    found = RecordedInstance(settings, sessions)
    await found.begin()
    await found.apply_only(watched() + QUIET, 0)
    await found.arrive([found.arrival(1, 50, "dsp.a", owner) for owner in OWNERS])
    await found.read_until(at(60))
    return found


async def change(
    connection: Connection, progress: Progress | None = None, large: bool = False
) -> ApplyResult:
    """Apply another rule, and remove the one over missing data."""
    loaded = load_text(watched() + OTHER, anchor=at(0))
    removed = (await preview(connection, loaded, at(60), prune=True)).plan.removed
    actor = replace(ACTOR, now=at(60))
    return await apply(connection, loaded, actor, removing=removed, large=large, progress=progress)


async def commits(connection: Connection) -> int:
    row = await one_row(connection, "select count(*) as n from tocsin.log_commit")
    return int(row["n"])


async def stale_at(connection: Connection) -> list[tuple[str, float]]:
    rows = await all_rows(connection, "select owner, ts from tocsin.datapoint_calculated order by owner")
    return [(row["owner"], (row["ts"] - at(0)).total_seconds()) for row in rows]


async def test_a_backlog_is_processed_in_chunks_between_which_the_lanes_continue(
    settings: Settings, connection: Connection, live: RecordedInstance
) -> None:
    reported: list[tuple[int, int]] = []

    def report(done: int, total: int) -> None:
        with psycopg.connect(settings.postgres, autocommit=True) as worker:
            worker.execute("select from tocsin.lane_partition for update nowait")
        reported.append((done, total))

    before = await commits(connection)
    await change(connection, report)
    assert reported == [(3, 12), (6, 12), (9, 12), (12, 12)]
    # Four chunks, and the apply itself.
    assert await commits(connection) == before + 5
    assert await stale_at(connection) == [(owner, DEADLINE) for owner in sorted(OWNERS)]
    ended = await all_rows(connection, "select opened_at, resolved_reason from tocsin.alarm")
    assert [tuple(row.values()) for row in ended] == [(at(DEADLINE), "rule-removed")] * 12
    _, found = await replayed(settings, at(0), at(60))
    assert not found.mismatches, "\n".join(map(str, found.mismatches))
    assert len(found.replayed_transitions) == 24


async def test_a_chunk_is_limited_by_its_checks_and_those_of_one_owner_are_never_divided(
    connection: Connection, live: RecordedInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The evaluation takes the time, and Postgres ends a session that is idle for long in its transaction."""
    for owner, count in {"plant-3": 2, "plant-5": 4}.items():
        await live.arrive([live.arrival(61, 50, f"dsp.{key}", owner) for key in range(count)])
    await live.read_until(at(100))
    reported: list[tuple[int, int]] = []
    timeouts: list[tuple[int, str]] = []

    async def plan(
        session: Connection, partition: int, inputs: list[OwnerWatermark], *rules: Any
    ) -> SeriesBatch:
        row = await one_row(session, "show idle_in_transaction_session_timeout")
        timeouts.append((len(inputs), str(*row.values())))
        return await plan_batch(session, partition, inputs, *rules)

    monkeypatch.setattr(backlog, "plan_batch", plan)
    await change(connection, progress=lambda done, total: reported.append((done, total)))
    # In the order of their names: 0, 1, 10; 11, 2; 3, 4; 5; 6, 7, 8; 9.
    assert reported == [(3, 16), (5, 16), (8, 16), (12, 16), (15, 16), (16, 16)]
    assert timeouts == [(3, "0"), (2, "0"), (2, "0"), (1, "30s"), (3, "0"), (1, "0")]
    stale = await one_row(
        connection, "select count(*) as n from tocsin.current_value where freshness = 'stale'"
    )
    assert stale == {"n": 18}, "two of them were handled by the datapoints that came"


async def test_killed_between_chunks_no_rule_has_changed_and_no_staleness_has_moved(
    settings: Settings, connection: Connection, live: RecordedInstance, sessions: Sessions
) -> None:
    victim = await sessions("victim")
    rules = await newest_rules(connection)

    def kill(done: int, _total: int) -> None:
        if done == 6:
            with psycopg.connect(settings.postgres, autocommit=True) as other:
                other.execute("select pg_terminate_backend(%s, 5000)", (victim.info.backend_pid,))

    with pytest.raises(psycopg.OperationalError):
        await change(victim, kill)
    assert await newest_rules(connection) == rules
    assert len(await stale_at(connection)) == 6
    # The clock runs again and handles the others.
    await live.settle(60)
    assert await stale_at(connection) == [(owner, DEADLINE) for owner in sorted(OWNERS)]
    await change(connection)
    _, found = await replayed(settings, at(0), at(60))
    assert not found.mismatches, "\n".join(map(str, found.mismatches))


async def test_a_chunk_waits_for_the_running_batch(
    connection: Connection, live: RecordedInstance, sessions: Sessions, watch: Connection
) -> None:
    worker = await sessions("other worker")

    async def waits() -> bool:
        return await blocked(watch, connection)

    async with worker.transaction():
        await worker.execute("select from tocsin.lane_partition for no key update")
        applying = asyncio.create_task(change(connection))
        await eventually(waits, "the chunk waits")
        assert await stale_at(watch) == []
    await applying


async def test_the_backlog_is_abandoned_when_another_apply_was_faster(
    settings: Settings, connection: Connection, live: RecordedInstance
) -> None:
    """Its checks are handled with the rules that hold: it starts again with those."""
    reported: list[tuple[int, int]] = []

    def report(done: int, total: int) -> None:
        if not reported:
            with psycopg.connect(settings.postgres, autocommit=True) as other:
                other.execute(
                    "insert into tocsin.rule_version (kind, name, version, document, from_seq)"
                    " select 'channel', 'other', 1, '{}', max(last_seq) + 1 from tocsin.log_commit"
                )
        reported.append((done, total))

    with suppress(Refused):  # it would also remove the document of the other apply
        await change(connection, report)
    assert reported == [(3, 12)]


async def test_a_watchdog_that_only_has_to_be_moved_is_not_in_the_backlog(
    connection: Connection, live: RecordedInstance
) -> None:
    """While no clock runs, the watchdogs of all fresh series are behind."""
    await live.arrive([live.arrival(61, 50, "dsp.a", owner) for owner in OWNERS])
    await live.arrive([live.arrival(69, 50, "dsp.a", owner) for owner in OWNERS[1:]])
    await live.read_until(at(72))
    assert await read_backlog(connection) == {0: [OverdueOwner(OWNERS[0], 1)]}


async def test_checks_that_become_due_while_the_lanes_are_blocked_start_the_apply_again(
    connection: Connection, live: RecordedInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(*_: object) -> None:
        """As if all of them became due just after the backlog was processed."""

    monkeypatch.setattr(transaction, "process_backlog", nothing)
    rules = await newest_rules(connection)
    with pytest.raises(Refused, match="staleness deadlines pass faster than they can be processed"):
        await change(connection)
    assert (await newest_rules(connection), await stale_at(connection)) == (rules, [])


async def test_alarms_that_the_backlog_opens_count_for_the_size_limit(
    connection: Connection, live: RecordedInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The backlog opens twelve alarms, which the apply would have to end."""
    monkeypatch.setattr(limits, "MAX_STATE_CHANGES", 11)
    with pytest.raises(Refused, match="changes the alarms of 12 owners and series at once"):
        await change(connection)
    held = await one_row(connection, "select count(*) as n from tocsin.alarm where state = 'open'")
    assert held == {"n": 12}


async def test_an_apply_that_would_block_the_lanes_for_long_is_rejected_unless_it_is_allowed(
    connection: Connection, live: RecordedInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    await live.settle(60)
    monkeypatch.setattr(limits, "MAX_STATE_CHANGES", 11)
    rules = await newest_rules(connection)
    with pytest.raises(Refused, match="changes the alarms of 12 owners and series at once"):
        await change(connection)
    assert await newest_rules(connection) == rules
    assert (await change(connection, large=True)).resolved == 12
    # A new rule evaluates as many.
    with pytest.raises(Refused, match="changes the alarms of 12 owners"):
        await live.apply_only(watched() + OTHER + QUIET, 70)
    monkeypatch.setattr(limits, "MAX_STATE_CHANGES", 12)
    await live.apply_only(watched() + OTHER + QUIET, 70)
    held = await one_row(connection, "select count(*) as n from tocsin.alarm where state = 'open'")
    assert held == {"n": 12}
