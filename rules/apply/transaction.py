"""Apply: documents become versions, schedules and the fate of what older documents began, in one transaction.

Guarantees: all or nothing; what is unchanged is left alone, so that applying a file again does nothing, and a schedule
that a person paused stays paused until its document changes. New versions hold for the records after the
`rules-applied` event of the same transaction, and removed ones up to it: what an alarm or an action of theirs does
in this transaction is said before that event, and so is still heard by the rules that began it; what new rules conclude
at once is said after it. Applies take turns.

The phases: schedules with their ticks first, because nobody who holds a partition touches those; then (0) the
partitions, (1) timers, (2) states, alarms and actions, (3) one append, and our own rows, which nobody else writes.
What the clock changed meanwhile shows as `Conflict`, and everything is decided again.

On failure nothing was applied, whatever was killed: the transaction is the only effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from rules.apply.actions import CancelWaiting, ended_rules
from rules.apply.alarms import change_alarms
from rules.apply.backlog import Behind, Progress, settle_backlog
from rules.apply.cutover import lock_partitions, record_cutovers
from rules.apply.impact import Decided, decide
from rules.apply.limits import refuse_large
from rules.apply.plan import Change, Key, Plan, plan, read_stored
from rules.apply.schedules import change_schedules, refuse_orphans
from rules.apply.staleness import hear_silences, settle
from rules.apply.systems import change_systems
from rules.apply.watchdogs import ChangedWatchdogs, read_tolerances
from rules.documents.load import Loaded
from rules.documents.rule_book import newest_rules
from rules.lanes.batch import Writes
from tocsin.core.audit import Actor
from tocsin.core.columns import column
from tocsin.core.db import Connection, retrying, statement
from tocsin.core.errors import Conflict, Refused
from tocsin.core.record_log import append_records
from tocsin.core.records import NewEvent, Records
from tocsin.core.sql_errors import LOCK_TIMEOUT

_LISTED = 1000
_VERBS = {"added": "add", "changed": "change", "removed": "remove"}
_TURNS = 20


@dataclass(frozen=True)
class Applied:
    plan: Plan
    seq: int | None
    """Of the `rules-applied` event; None if nothing changed."""
    next_at: dict[Key, datetime | None]
    """The next fire of each schedule that the files name."""
    resolved: int = 0
    """Alarms that this apply resolved."""
    cancelled: int = 0
    """Actions that it cancelled before they began."""


@dataclass(frozen=True)
class _Prepared:
    """What was decided before the transaction, because deciding about thousands of documents takes its time."""

    newest: int
    """The apply it rests on: after another one it is decided again."""
    plan: Plan
    decided: Decided


async def apply(
    connection: Connection,
    loaded: Loaded,
    actor: Actor,
    *,
    removing: frozenset[Key] | None = None,
    large: bool = False,
    tell: Progress | None = None,
) -> Applied:
    """`removing` is what a person agreed to remove, and must be all that the files leave out; None removes nothing.
    `large`: even if it stops the lanes for long. `tell` hears how much of a backlog is settled, if there is one."""

    async def once() -> Applied:
        prepared = await _prepare(connection, loaded, prune=removing is not None)
        if removing is not None and prepared.plan.removed != removing:
            raise Refused(
                "the rules were changed since you looked", remedy="look at the plan again, then apply it"
            )
        if prepared.decided.systems is not None:
            await settle_backlog(connection, prepared.decided, prepared.newest, tell)
            # Only now: what was overdue has opened alarms that this may end.
            if not large:
                await refuse_large(connection, prepared.decided)
        async with connection.transaction():
            return await _apply(connection, prepared, actor)

    for _ in range(_TURNS):
        try:
            return await retrying(once)
        except (Conflict, Behind):
            continue
        except LOCK_TIMEOUT:
            break
    raise Refused(
        "somebody else applies rules at this moment, holds what they change, or silences come due faster than they can "
        "be settled",
        remedy="look at `tocsin doctor`, and try again",
    )


async def _prepare(connection: Connection, loaded: Loaded, *, prune: bool) -> _Prepared:
    newest = await newest_rules(connection)
    stored = await read_stored(connection)
    planned = plan(loaded, stored, prune=prune)
    return _Prepared(newest, planned, decide(stored, planned))


async def _apply(connection: Connection, prepared: _Prepared, actor: Actor) -> Applied:
    planned, decided = prepared.plan, prepared.decided
    await connection.execute(statement("rules.apply/lock_rules"))
    if await newest_rules(connection) != prepared.newest:
        raise Conflict("another apply was quicker")
    await refuse_orphans(connection, planned)
    next_at = await change_schedules(connection, planned, actor)
    if not planned.effective:
        return Applied(planned, None, next_at)
    complete = await lock_partitions(connection)
    settled, facts = await settle(connection, complete, decided)
    tolerances = await read_tolerances(connection, decided.before.types, decided.after.types)
    actions = CancelWaiting(ended_rules(planned.effective))
    works: tuple[Writes, ...] = (actions, ChangedWatchdogs(tolerances))
    for work in works:
        await work.timers(connection)
    edges = await change_alarms(connection, decided.state_changes, complete, actor.now)
    for work in works:
        await work.entities(connection)
    heard = await hear_silences(connection, complete, decided, actor.now)
    await _audit(connection, planned.effective, actor)
    await connection.execute(statement("rules.apply/be_patient"))
    health = await change_systems(connection, decided, complete, facts, actor.now)
    applied = Records([_applied_event(planned, actor)])
    ends = [Records(edges), *(work.records() for work in works)]
    records = Records.joined([settled, *ends, applied, heard, health])
    seq = await _record(connection, planned.effective, records, len(heard.events))
    resolved = sum(event.type == "alarm-resolved" for event in edges)
    return Applied(planned, seq, next_at, resolved, len(actions.steps))


async def _audit(connection: Connection, changes: Sequence[Change], actor: Actor) -> None:
    """Schedules have their own rows: putting one says what it did."""
    told = [change for change in changes if change.kind != "schedule"]
    if told:
        await connection.execute(
            statement("rules.apply/insert_audit"),
            {
                "at": actor.now,
                "who": actor.who,
                "via": actor.via,
                "verbs": column(_VERBS[change.outcome] for change in told),
                "kinds": column(change.kind for change in told),
                "names": column(change.name for change in told),
                "old": column(change.before for change in told),
                "new": column(change.after for change in told),
            },
        )


async def _record(connection: Connection, changes: Sequence[Change], records: Records, after: int) -> int:
    """The log is locked by the append, so the versions written after it are cheap rows of ours alone. `after`: how many
    events come after `rules-applied`."""
    last = await append_records(connection, records)
    assert last is not None
    seq = last - after - len(records.steps) - len(records.calculated)
    columns: dict[str, Any] = {
        "seq": seq,
        "kinds": [change.kind for change in changes],
        "names": [change.name for change in changes],
    }
    await connection.execute(statement("rules.apply/end_versions"), columns)
    begun = [change for change in changes if change.after is not None]
    await connection.execute(
        statement("rules.apply/insert_versions"),
        {
            "seq": seq,
            "kinds": [change.kind for change in begun],
            "names": [change.name for change in begun],
            "versions": [change.version for change in begun],
            "documents": [Jsonb(change.after) for change in begun],
        },
    )
    await record_cutovers(connection, seq)
    return seq


def _applied_event(planned: Plan, actor: Actor) -> NewEvent:
    listed = [
        {"kind": change.kind, "name": change.name, "version": change.version, "outcome": change.outcome}
        for change in planned.effective
    ]
    return NewEvent(
        ts=actor.now,
        origin="caused",
        type="rules-applied",
        payload={"count": len(listed), "documents": listed[:_LISTED], "who": actor.who, "via": actor.via},
    )
