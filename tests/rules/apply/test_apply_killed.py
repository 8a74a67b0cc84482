"""A session that is killed between any two statements of an apply leaves everything as it was."""

from __future__ import annotations

from typing import Any

import psycopg

from rules.apply import ApplyResult, apply, preview
from rules.documents.load import load_text
from tests.killable_session import KillableSession
from tests.rules.apply.apply_setup import ACTOR, T0, action, begin, everything, put, rule, schedule
from tests.rules.lanes.arrivals import arrive, assert_nothing_is_orphaned, hot, minute
from tests.sessions import Sessions
from tocsin.core.db import Connection

BEFORE = (
    schedule("kept")
    + schedule("gone")
    + schedule("moved", extra="  owner: a\n")
    + action("tell", "one")
    + rule("each", "tell")
    + hot(name="removed")
    + hot(name="pending", extra="  for: 10m\n")
    + hot(name="changed", extra="  for: 10m\n")
)
AFTER = (
    schedule("kept", "20s")
    + schedule("moved", extra="  owner: b\n")
    + schedule("each")
    + action("tell", "two")
    + hot("value > 80.0", name="changed", extra="  for: 10m\n")
    + hot(name="renamed")
)


async def test_a_kill_between_any_two_statements_leaves_everything_as_it_was(
    connection: Connection, watch: Connection, sessions: Sessions
) -> None:
    await put(connection, BEFORE)
    await arrive(connection, minute(1), 70)
    for state in ("gathering", "queued", "running"):
        await begin(connection, "each", state)
    loaded = load_text(AFTER, anchor=T0)
    removing = (await preview(connection, loaded, ACTOR.now, prune=True)).plan.removed
    before = await everything(connection)
    killed, applied = 0, None
    while applied is None:
        applied = await _apply_or_die(await sessions("apply"), watch, killed, loaded, removing)
        if applied is None:
            killed += 1
            assert await everything(watch) == before
    assert killed > 30, "the test no longer reaches most statements"
    assert (applied.resolved, applied.cancelled) == (1, 2)
    assert {change.outcome for change in applied.plan.effective} == {"added", "changed", "removed"}
    await assert_nothing_is_orphaned(connection)
    after = await everything(connection)
    assert (await apply(connection, loaded, ACTOR, removing=frozenset())).seq is None
    assert await everything(connection) == after


async def _apply_or_die(
    session: Connection, watch: Connection, statements: int, loaded: Any, removing: Any
) -> ApplyResult | None:
    mortal: Any = KillableSession(session, watch, statements)
    try:
        return await apply(mortal, loaded, ACTOR, removing=removing)
    except psycopg.OperationalError:
        return None
