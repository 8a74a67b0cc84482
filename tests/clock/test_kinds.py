"""Timer kinds take turns, and held or failing rows of one do not delay another."""

from __future__ import annotations

from datetime import datetime

import psycopg
import pytest

from clock.term import Term, begin_term
from clock.ticks import ScheduleTicks
from tests.clock.clock_setup import at, drain, fired, put
from tests.clock.plain_kind import Plain, arm_plain, fired_plain, release, spoil
from tests.records import events
from tests.sessions import Sessions
from tests.sql import all_rows, one_row
from tocsin.core.db import Connection
from tocsin.core.errors import Deposed

WAIT, WATCHDOG = "runbook-wait", "watchdog"


@pytest.fixture
def wait() -> Plain:
    return Plain(WAIT)


@pytest.fixture
def watchdog() -> Plain:
    return Plain(WATCHDOG)


async def lead(connection: Connection, *kinds: Plain, batch: int = 10) -> Term:
    return await begin_term(connection, "test", kinds=(*kinds, ScheduleTicks()), batch=batch)


async def virtual_now(connection: Connection, now: datetime) -> None:
    await connection.execute("select set_config('tocsin.now', %s, false)", (now.isoformat(),))


def keys(first: int, last: int) -> list[tuple[str, str]]:
    return [("one", f"{number:05}") for number in range(first, last + 1)]


async def test_every_kind_gets_a_batch_in_every_round(
    connection: Connection, wait: Plain, watchdog: Plain
) -> None:
    for kind in (WAIT, WATCHDOG):
        await arm_plain(connection, kind, at(10), count=35)
    for number in range(25):
        await put(connection, name=f"beat-{number}")
    term = await lead(connection, wait, watchdog)
    rounds = await drain(term, at(10))
    assert [round.fires for round in rounds] == [30, 30, 25, 10]
    assert [round.more for round in rounds] == [True, True, True, False]
    for kind in (WAIT, WATCHDOG):
        assert await fired_plain(connection, kind) == keys(1, 35)
    assert len(await fired(connection)) == 25


async def test_ten_thousand_held_rows_delay_no_tick(connection: Connection, watchdog: Plain) -> None:
    await arm_plain(connection, WATCHDOG, at(1), count=10_000, held=True)
    await put(connection)
    term = await lead(connection, watchdog, batch=1000)
    first = await term.run_once(at(10))
    assert (first.fires, first.held, first.more) == (1, 1000, True)
    assert await fired(connection) == [("beat", at(10))]
    await drain(term, at(10))
    assert watchdog.walked == [1000] * 10 + [0], "no statement walks over more than a batch"


async def test_a_mark_is_exact_within_one_instant_of_one_entity(connection: Connection, wait: Plain) -> None:
    await arm_plain(connection, WAIT, at(10), count=25)
    term = await lead(connection, wait)
    rounds = await drain(term, at(10))
    assert [round.fires for round in rounds] == [10, 10, 5]
    assert wait.walked == [10, 10, 5]
    assert await fired_plain(connection, WAIT) == keys(1, 25)


async def test_a_held_row_is_passed_over_and_neither_fires_nor_fails(
    connection: Connection, watchdog: Plain
) -> None:
    await arm_plain(connection, WATCHDOG, at(5), ref="held", count=25, held=True)
    await arm_plain(connection, WATCHDOG, at(6), count=3)
    term = await lead(connection, watchdog)
    rounds = await drain(term, at(10))
    assert [(round.fires, round.held) for round in rounds] == [(0, 10), (0, 10), (3, 5)]
    assert await fired_plain(connection, WATCHDOG) == keys(1, 3)
    rows = await all_rows(connection, "select * from tocsin.timer")
    assert {(row["fire_at"], row["attempts"], row["last_error"], row["parked_at"]) for row in rows} == {
        (at(5), 0, None, None)
    }
    assert len(rows) == 25


async def test_a_held_row_is_checked_again_after_a_moment_and_fires_when_it_may(
    connection: Connection, watchdog: Plain
) -> None:
    """It is older than the last two seconds, and the backstop does not run."""
    await arm_plain(connection, WATCHDOG, at(5), held=True)
    term = await lead(connection, watchdog)
    await drain(term, at(10))
    await release(connection)
    await drain(term, at(10.04))
    assert await fired_plain(connection, WATCHDOG) == []
    await drain(term, at(10.05))
    assert await fired_plain(connection, WATCHDOG) == keys(1, 1)


async def test_a_held_row_wakes_no_scan_until_it_is_checked_again(
    connection: Connection, watch: Connection, watchdog: Plain
) -> None:
    await arm_plain(connection, WATCHDOG, at(5), held=True)
    term = await lead(connection, watchdog)
    await drain(term, at(10))
    await virtual_now(connection, at(10.02))
    term.rescan_recent(at(10.02))
    assert await term.poll() == (at(10.02), None)
    await term.backstop_scan(watch)
    assert await term.poll() == (at(10.02), None), "the backstop leaves it to the scan"
    await term.run_once(at(10.02))
    assert watchdog.walked == [1], "only the first round walked over it"
    term.rescan_recent(at(10.05))
    assert await term.poll() == (at(10.02), at(5))


async def test_a_batch_full_of_held_rows_is_checked_again_when_nothing_else_is_due(
    connection: Connection, watchdog: Plain
) -> None:
    """As in the service, a round runs only if a poll finds a due timer."""
    await arm_plain(connection, WATCHDOG, at(5), count=10, held=True)
    term = await lead(connection, watchdog, batch=10)
    assert (await term.run_once(at(10))).more
    await virtual_now(connection, at(10))
    assert await term.poll() == (at(10), None)
    await release(connection)
    term.rescan_recent(at(10.05))
    assert await term.poll() == (at(10), at(5))
    await drain(term, at(10.05))
    assert await fired_plain(connection, WATCHDOG) == keys(1, 10)


async def test_the_backstop_finds_a_row_that_is_older_than_all_held_rows(
    connection: Connection, watch: Connection, watchdog: Plain
) -> None:
    await arm_plain(connection, WATCHDOG, at(5), ref="held", held=True)
    term = await lead(connection, watchdog)
    await drain(term, at(10))
    await arm_plain(connection, WATCHDOG, at(4))
    await drain(term, at(10.01))
    assert await fired_plain(connection, WATCHDOG) == []
    await term.backstop_scan(watch)
    await drain(term, at(10.01))
    assert await fired_plain(connection, WATCHDOG) == keys(1, 1)


async def test_a_row_that_another_transaction_has_locked_is_checked_again_like_a_held_one(
    connection: Connection, sessions: Sessions, wait: Plain
) -> None:
    await arm_plain(connection, WAIT, at(5), count=2)
    term = await lead(connection, wait)
    holder = await sessions("holder")
    async with holder.transaction():
        await holder.execute("select 1 from tocsin.timer where key = '00001' for update")
        await drain(term, at(10))
        assert await fired_plain(connection, WAIT) == keys(2, 2)
    await drain(term, at(10.05))
    assert await fired_plain(connection, WAIT) == [*keys(2, 2), *keys(1, 1)]


async def test_a_late_commit_lowers_the_mark_of_its_own_kind(
    connection: Connection, watch: Connection, wait: Plain, watchdog: Plain
) -> None:
    term = await lead(connection, wait, watchdog)
    await drain(term, at(60))
    await arm_plain(connection, WAIT, at(10))
    await term.backstop_scan(watch)
    marks = {kind: scan.mark.fire_at for kind, scan in term.scans.items()}
    assert marks == {WAIT: at(10), WATCHDOG: at(60), "schedule-tick": at(60)}
    await drain(term, at(60.01))
    assert await fired_plain(connection, WAIT) == keys(1, 1)


async def test_a_poll_finds_the_next_timer_of_all_kinds_and_moves_each_mark(
    connection: Connection, wait: Plain, watchdog: Plain
) -> None:
    await put(connection)
    await arm_plain(connection, WAIT, at(7))
    await arm_plain(connection, WATCHDOG, at(30))
    term = await lead(connection, wait, watchdog)
    await virtual_now(connection, at(8))
    term.rescan_recent(at(8))
    assert await term.poll() == (at(8), at(7))
    marks = {kind: scan.mark.fire_at for kind, scan in term.scans.items()}
    assert marks == {WAIT: at(7), WATCHDOG: at(8), "schedule-tick": at(8)}
    await term.run_once(at(8))
    assert (wait.walked, watchdog.walked) == ([1], []), "a kind without due timers is not scanned"
    assert await term.poll() == (at(8), at(10))
    await drain(term, at(40))
    assert await fired_plain(connection, WATCHDOG) == keys(1, 1)


async def test_a_poll_passes_over_the_rows_of_one_instant_that_were_walked_over(
    connection: Connection, wait: Plain
) -> None:
    """The mark lies within the instant, so the poll finds the next row after it."""
    await arm_plain(connection, WAIT, at(10), count=10, held=True)
    await arm_plain(connection, WAIT, at(12), ref="two")
    term = await lead(connection, wait)
    await term.run_once(at(11))
    await virtual_now(connection, at(11))
    assert await term.poll() == (at(11), at(12))


async def test_a_kind_that_is_not_registered_is_not_scanned(connection: Connection, wait: Plain) -> None:
    await arm_plain(connection, WATCHDOG, at(5))
    term = await lead(connection, wait)
    await virtual_now(connection, at(10))
    assert await term.poll() == (at(10), None)
    assert await drain(term, at(10)) != []
    assert len(await all_rows(connection, "select * from tocsin.timer")) == 1


async def test_a_timer_that_becomes_due_while_another_kind_drains_gets_its_turn(
    connection: Connection, watchdog: Plain
) -> None:
    await arm_plain(connection, WATCHDOG, at(5), count=50)
    term = await lead(connection, watchdog)
    await virtual_now(connection, at(9.9))
    await term.poll()
    await term.run_once(at(9.9))
    await put(connection)
    await virtual_now(connection, at(10))
    await term.poll()
    assert (await term.run_once(at(10))).more
    assert await fired(connection) == [("beat", at(10))]


@pytest.mark.parametrize("how", ["bad", "worse"])
async def test_a_bad_row_fails_alone_and_the_other_kinds_keep_their_batch_size(
    connection: Connection, watchdog: Plain, how: str
) -> None:
    await arm_plain(connection, WATCHDOG, at(5), count=8)
    await spoil(connection, WATCHDOG, "00003", how)
    for number in range(8):
        await put(connection, name=f"beat-{number}")
    term = await lead(connection, watchdog, batch=9)
    first = await term.run_once(at(10))
    assert len(await fired(connection)) == 8, "the batch of ticks is not halved"
    assert first.more == (how == "worse")
    await drain(term, at(10))
    assert await fired_plain(connection, WATCHDOG) == [*keys(1, 2), *keys(4, 8)]
    bad = await one_row(connection, "select * from tocsin.timer where kind = %s", (WATCHDOG,))
    assert (bad["key"], bad["attempts"], bad["fire_at"]) == ("00003", 1, at(11))
    assert bad["last_error"].startswith("ValueError: ")


async def test_a_batch_that_lost_to_another_transaction_is_retried_without_a_failed_row(
    connection: Connection, wait: Plain
) -> None:
    await arm_plain(connection, WAIT, at(5), count=3)
    await connection.execute(
        "create function lose() returns trigger language plpgsql as $$ begin"
        " if nextval('public.tries') = 1 then raise exception 'lost' using errcode = '40P01'; end if; return old;"
        " end $$"
    )
    await connection.execute("create sequence public.tries")
    await connection.execute(
        "create trigger lose before delete on tocsin.timer for each row execute function lose()"
    )
    term = await lead(connection, wait)
    assert [round.fires for round in await drain(term, at(10))] == [0, 3]
    assert await fired_plain(connection, WAIT) == keys(1, 3)


async def test_no_kind_can_write_under_a_superseded_epoch(connection: Connection, wait: Plain) -> None:
    await arm_plain(connection, WAIT, at(5))
    term = await lead(connection, wait)
    await connection.execute("update tocsin.log_head set epoch = epoch + 1")
    with pytest.raises(Deposed):
        await term.run_once(at(10))
    assert await events(connection) == []
    assert len(await all_rows(connection, "select * from tocsin.timer")) == 1


async def test_a_fire_and_a_cancel_have_one_winner(
    connection: Connection, sessions: Sessions, wait: Plain
) -> None:
    await arm_plain(connection, WAIT, at(5))
    term = await lead(connection, wait)
    canceller = await sessions("canceller")
    async with canceller.transaction():
        await canceller.execute("select tocsin.cancel('runbook-wait', 'one', '00001')")
        await drain(term, at(10))
    await drain(term, at(10.05))
    assert await fired_plain(connection, WAIT) == []
    assert await all_rows(connection, "select * from tocsin.timer") == []


async def test_an_error_that_no_row_caused_ends_the_round(connection: Connection, wait: Plain) -> None:
    await arm_plain(connection, WAIT, at(5))
    await connection.execute("alter table tocsin.event rename to event_away")
    term = await lead(connection, wait)
    with pytest.raises(psycopg.errors.UndefinedTable):
        await term.run_once(at(10))
