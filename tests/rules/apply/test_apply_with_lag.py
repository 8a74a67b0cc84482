"""An apply while much is overdue, or with much to change: the lanes go on, and it is all or nothing as ever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from rules.alarms.over_series import OwnerWatermark, SeriesBatch, plan_batch
from rules.apply import Applied, alarms, apply, backlog, preview, transaction
from rules.apply import limits as extent
from rules.apply import staleness as silences
from rules.apply.backlog import Overdue, read_backlog
from rules.documents.load import load_text
from rules.documents.rule_book import newest_rules
from tests.clock.heartbeats import at
from tests.rules.apply.apply_setup import ACTOR
from tests.rules.apply.watched_series import OTHER, QUIET, watched
from tests.rules.replay.backtest.recorded_instance import Living, replayed
from tests.sessions import Sessions
from tests.sql import all_rows, blocked, one_row
from tests.waiting import eventually
from tocsin.core.db import Connection
from tocsin.core.errors import Refused
from tocsin.core.settings import Settings

OWNERS = [f"plant-{number}" for number in range(12)]
DEADLINE = 11.0
Tell = Callable[[int, int], None]


@pytest.fixture
async def live(settings: Settings, sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> Living:
    """Twelve owners that fell silent, their deadlines long read, and no clock; three silences make a page."""
    for module in (backlog, silences):
        monkeypatch.setattr(module, "MOST", 2)
    for module in (alarms, backlog, silences):
        monkeypatch.setattr(module, "_AT_ONCE", 3)
    found = Living(settings, sessions)
    await found.begin()
    await found.only(watched() + QUIET, 0)
    await found.arrive([found.arrival(1, 50, "dsp.a", owner) for owner in OWNERS])
    await found.read_until(at(60))
    return found


async def change(connection: Connection, tell: Tell | None = None, large: bool = False) -> Applied:
    """Another rule, and the one over silence goes."""
    loaded = load_text(watched() + OTHER, anchor=at(0))
    removed = (await preview(connection, loaded, at(60), prune=True)).plan.removed
    actor = replace(ACTOR, now=at(60))
    return await apply(connection, loaded, actor, removing=removed, large=large, tell=tell)


async def commits(connection: Connection) -> int:
    row = await one_row(connection, "select count(*) as n from tocsin.log_commit")
    return int(row["n"])


async def stale_at(connection: Connection) -> list[tuple[str, float]]:
    rows = await all_rows(connection, "select owner, ts from tocsin.datapoint_calculated order by owner")
    return [(row["owner"], (row["ts"] - at(0)).total_seconds()) for row in rows]


async def test_what_is_overdue_is_settled_in_pages_between_which_the_lanes_go_on(
    settings: Settings, connection: Connection, live: Living
) -> None:
    told: list[tuple[int, int]] = []

    def tell(done: int, total: int) -> None:
        with psycopg.connect(settings.postgres, autocommit=True) as worker:
            worker.execute("select from tocsin.lane_partition for update nowait")
        told.append((done, total))

    before = await commits(connection)
    await change(connection, tell)
    assert told == [(3, 12), (6, 12), (9, 12), (12, 12)]
    # Four pages, and the apply itself.
    assert await commits(connection) == before + 5
    assert await stale_at(connection) == [(owner, DEADLINE) for owner in sorted(OWNERS)]
    ended = await all_rows(connection, "select opened_at, resolved_reason from tocsin.alarm")
    assert [tuple(row.values()) for row in ended] == [(at(DEADLINE), "rule-removed")] * 12
    _, found = await replayed(settings, at(0), at(60))
    assert not found.mismatches, "\n".join(map(str, found.mismatches))
    assert len(found.replayed_transitions) == 24


async def test_a_page_is_of_so_many_silences_and_those_of_one_owner_are_never_divided(
    connection: Connection, live: Living, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Judging it is what takes the time, and a session that is idle for long in its transaction is ended."""
    for owner, count in {"plant-3": 2, "plant-5": 4}.items():
        await live.arrive([live.arrival(61, 50, f"dsp.{key}", owner) for key in range(count)])
    await live.read_until(at(100))
    told: list[tuple[int, int]] = []
    patience: list[tuple[int, str]] = []

    async def plan(
        session: Connection, partition: int, inputs: list[OwnerWatermark], *rules: Any
    ) -> SeriesBatch:
        row = await one_row(session, "show idle_in_transaction_session_timeout")
        patience.append((len(inputs), str(*row.values())))
        return await plan_batch(session, partition, inputs, *rules)

    monkeypatch.setattr(backlog, "plan_batch", plan)
    await change(connection, tell=lambda done, total: told.append((done, total)))
    # In the order of their names: 0, 1, 10; 11, 2; 3, 4; 5; 6, 7, 8; 9.
    assert told == [(3, 16), (5, 16), (8, 16), (12, 16), (15, 16), (16, 16)]
    assert patience == [(3, "0"), (2, "0"), (2, "0"), (1, "30s"), (3, "0"), (1, "0")]
    stale = await one_row(
        connection, "select count(*) as n from tocsin.current_value where freshness = 'stale'"
    )
    assert stale == {"n": 18}, "two of them were settled by the datapoints that came"


async def test_killed_between_pages_no_rule_has_changed_and_no_silence_is_moved(
    settings: Settings, connection: Connection, live: Living, sessions: Sessions
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
    # The clock comes back, and finds the others.
    await live.come_to_rest(60)
    assert await stale_at(connection) == [(owner, DEADLINE) for owner in sorted(OWNERS)]
    await change(connection)
    _, found = await replayed(settings, at(0), at(60))
    assert not found.mismatches, "\n".join(map(str, found.mismatches))


async def test_a_page_waits_for_the_batch_under_way(
    connection: Connection, live: Living, sessions: Sessions, watch: Connection
) -> None:
    worker = await sessions("other worker")

    async def waits() -> bool:
        return await blocked(watch, connection)

    async with worker.transaction():
        await worker.execute("select from tocsin.lane_partition for no key update")
        applying = asyncio.create_task(change(connection))
        await eventually(waits, "the page waits")
        assert await stale_at(watch) == []
    await applying


async def test_pages_end_when_another_apply_was_quicker(
    settings: Settings, connection: Connection, live: Living
) -> None:
    """They are judged by the rules that hold: it begins again with those."""
    told: list[tuple[int, int]] = []

    def tell(done: int, total: int) -> None:
        if not told:
            with psycopg.connect(settings.postgres, autocommit=True) as other:
                other.execute(
                    "insert into tocsin.rule_version (kind, name, version, document, from_seq)"
                    " select 'channel', 'other', 1, '{}', max(last_seq) + 1 from tocsin.log_commit"
                )
        told.append((done, total))

    with suppress(Refused):  # it would remove the other one, too
        await change(connection, tell)
    assert told == [(3, 12)]


async def test_a_watchdog_that_only_has_to_move_itself_is_no_backlog(
    connection: Connection, live: Living
) -> None:
    """A clock that is away leaves the watchdogs of all living series behind."""
    await live.arrive([live.arrival(61, 50, "dsp.a", owner) for owner in OWNERS])
    await live.arrive([live.arrival(69, 50, "dsp.a", owner) for owner in OWNERS[1:]])
    await live.read_until(at(72))
    assert await read_backlog(connection) == {0: [Overdue(OWNERS[0], 1)]}


async def test_silences_that_come_due_while_the_lanes_are_stopped_send_it_back(
    connection: Connection, live: Living, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(*_: object) -> None:
        """As if all of them came due in the very moment after the backlog was settled."""

    monkeypatch.setattr(transaction, "settle_backlog", nothing)
    rules = await newest_rules(connection)
    with pytest.raises(Refused, match="silences come due faster than they can be settled"):
        await change(connection)
    assert (await newest_rules(connection), await stale_at(connection)) == (rules, [])


async def test_what_the_backlog_opens_is_counted_among_what_the_apply_changes(
    connection: Connection, live: Living, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the twelve silences nobody had heard; settling them opens the alarms that the apply would have to end."""
    monkeypatch.setattr(extent, "MOST", 11)
    with pytest.raises(Refused, match="changes the alarms of 12 owners and series at once"):
        await change(connection)
    held = await one_row(connection, "select count(*) as n from tocsin.alarm where state = 'open'")
    assert held == {"n": 12}


async def test_one_that_would_stop_the_lanes_for_long_is_refused_unless_that_is_wanted(
    connection: Connection, live: Living, monkeypatch: pytest.MonkeyPatch
) -> None:
    await live.come_to_rest(60)
    monkeypatch.setattr(extent, "MOST", 11)
    rules = await newest_rules(connection)
    with pytest.raises(Refused, match="changes the alarms of 12 owners and series at once"):
        await change(connection)
    assert await newest_rules(connection) == rules
    assert (await change(connection, large=True)).resolved == 12
    # As many are heard of by a rule that is new.
    with pytest.raises(Refused, match="changes the alarms of 12 owners"):
        await live.only(watched() + OTHER + QUIET, 70)
    monkeypatch.setattr(extent, "MOST", 12)
    await live.only(watched() + OTHER + QUIET, 70)
    held = await one_row(connection, "select count(*) as n from tocsin.alarm where state = 'open'")
    assert held == {"n": 12}
