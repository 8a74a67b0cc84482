"""Applies a plan in one transaction: versions, schedules, and what old versions have started.

Guarantees: all or nothing. Unchanged documents are left alone, so applying a file again does
nothing, and a schedule that an operator paused stays paused until its document changes. New
versions hold for the records after the `rules-applied` event of the same transaction, removed
versions up to it. The events of alarms and runs that this transaction ends come before that event,
so the rules that started them still see them. The events that new rules cause at once come after
it. One apply runs at a time.

The phases: first schedules with their ticks, because no transaction that holds a partition touches
those. Then (0) the partitions, (1) timers, (2) states, alarms and runs, (3) one append, and the
rows that only an apply writes. If the clock changed something in the meantime, `Conflict` is raised
and everything is decided again.

On failure nothing was applied, whatever was killed: the transaction is the only effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from rules.apply.actions import CancelUnstarted, ended_rules
from rules.apply.alarms import change_alarms
from rules.apply.backlog import BacklogTooLarge, Progress, process_backlog
from rules.apply.cutover import lock_partitions, record_cutovers
from rules.apply.heartbeats import begin_heartbeats, pass_deadlines
from rules.apply.impact import Impact, impact_of
from rules.apply.limits import check_size
from rules.apply.maintenance import ChangeWindows
from rules.apply.plan import ApplyPlan, DocumentChange, DocumentKey, plan_changes, read_stored
from rules.apply.schedules import change_schedules, refuse_orphaned_schedules
from rules.apply.staleness import evaluate_stale_series, handle_overdue
from rules.apply.systems import change_systems
from rules.apply.watchdogs import ChangedWatchdogs, read_changed_stale_after
from rules.documents.load import LoadedDocuments
from rules.documents.rule_book import newest_rules
from rules.lanes.batch import Writes
from tocsin.core.audit import Actor
from tocsin.core.columns import column
from tocsin.core.db import Connection, retrying, statement
from tocsin.core.errors import Conflict, Refused
from tocsin.core.record_log import append_records
from tocsin.core.records import NewEvent, NewRecords
from tocsin.core.sql_errors import LOCK_TIMEOUT

_MAX_LISTED = 1000
_VERBS = {"added": "add", "changed": "change", "removed": "remove"}
_TRIES = 20


@dataclass(frozen=True)
class ApplyResult:
    plan: ApplyPlan
    seq: int | None
    """The seq of the `rules-applied` event; None if nothing changed."""
    next_at: dict[DocumentKey, datetime | None]
    """The next fire of each schedule in the files."""
    resolved: int = 0
    """The number of alarms that this apply resolved."""
    cancelled: int = 0
    """The number of runs that this apply cancelled before they started."""


@dataclass(frozen=True)
class _Prepared:
    """Decisions that are made before the transaction, because they take long."""

    newest: int
    """The apply that the decisions are based on: after another one they are made again."""
    plan: ApplyPlan
    impact: Impact


async def apply(
    connection: Connection,
    loaded: LoadedDocuments,
    actor: Actor,
    *,
    removing: frozenset[DocumentKey] | None = None,
    large: bool = False,
    progress: Progress | None = None,
) -> ApplyResult:
    """Apply loaded documents.

    `removing` are the documents that the operator agreed to remove. They must be all stored
    documents that the files leave out; None removes nothing. `large` allows an apply that blocks
    the lanes for long. `progress` is called while a backlog is processed.
    """

    async def once() -> ApplyResult:
        prepared = await _prepare(connection, loaded, prune=removing is not None)
        if removing is not None and prepared.plan.removed != removing:
            raise Refused(
                "the rules were changed after the plan was shown",
                remedy="check the plan again, then apply it",
            )
        if prepared.impact.systems is not None:
            await process_backlog(connection, prepared.impact, prepared.newest, progress)
            # After the backlog: it may have opened alarms that this apply ends.
            if not large:
                await check_size(connection, prepared.impact)
        async with connection.transaction():
            return await _apply(connection, prepared, actor)

    for _ in range(_TRIES):
        try:
            return await retrying(once)
        except (Conflict, BacklogTooLarge):
            continue
        except LOCK_TIMEOUT:
            break
    raise Refused(
        "could not get the locks: another apply is running, or staleness deadlines pass faster than they can be "
        "processed",
        remedy="check `tocsin doctor` and try again",
    )


async def _prepare(connection: Connection, loaded: LoadedDocuments, *, prune: bool) -> _Prepared:
    newest = await newest_rules(connection)
    stored = await read_stored(connection)
    plan = plan_changes(loaded, stored, prune=prune)
    return _Prepared(newest, plan, impact_of(stored, plan))


async def _apply(connection: Connection, prepared: _Prepared, actor: Actor) -> ApplyResult:
    plan, impact = prepared.plan, prepared.impact
    await connection.execute(statement("rules.apply/lock_rules"))
    if await newest_rules(connection) != prepared.newest:
        raise Conflict("another apply was faster")
    await refuse_orphaned_schedules(connection, plan)
    next_at = await change_schedules(connection, plan, actor)
    if not plan.effective:
        return ApplyResult(plan, None, next_at)
    watermarks = await lock_partitions(connection)
    overdue, observations = await handle_overdue(connection, watermarks, impact)
    deadlines, of_deadlines = await pass_deadlines(connection, watermarks, impact)
    observations += of_deadlines
    stale_after = await read_changed_stale_after(connection, impact.before.types, impact.after.types)
    runs = CancelUnstarted(ended_rules(plan.effective))
    windows = await ChangeWindows.read(connection, plan, actor)
    works: tuple[Writes, ...] = (windows, runs, ChangedWatchdogs(stale_after))
    for work in works:
        await work.write_timers(connection)
    transitions = await change_alarms(connection, impact.state_changes, watermarks, actor.now)
    for work in works:
        await work.write_entities(connection)
    evaluated = await evaluate_stale_series(connection, watermarks, impact, actor.now)
    begun = await begin_heartbeats(connection, watermarks, impact, actor.now)
    await _audit(connection, plan.effective, actor)
    await connection.execute(statement("rules.apply/raise_idle_timeout"))
    health = await change_systems(connection, impact, watermarks, observations, actor.now)
    applied = NewRecords([_applied_event(plan, actor)])
    ends = [NewRecords(transitions), *(work.records_to_append() for work in works if work is not windows)]
    following = NewRecords.joined([windows.records_to_append(), evaluated])
    records = NewRecords.joined([overdue, deadlines, *ends, begun, applied, following, health])
    seq = await _record(connection, plan.effective, records, len(following.events))
    resolved = sum(event.type == "alarm-resolved" for event in transitions)
    return ApplyResult(plan, seq, next_at, resolved, len(runs.steps))


async def _audit(connection: Connection, changes: Sequence[DocumentChange], actor: Actor) -> None:
    """Write the audit rows of all documents but schedules, which have their own."""
    audited = [change for change in changes if change.kind != "schedule"]
    if audited:
        await connection.execute(
            statement("rules.apply/insert_audit"),
            {
                "who": actor.claimed or actor.who,
                "via": actor.via,
                "verbs": column(_VERBS[change.outcome] for change in audited),
                "kinds": column(change.kind for change in audited),
                "names": column(change.name for change in audited),
                "old": column(change.before for change in audited),
                "new": column(change.after for change in audited),
            },
        )


async def _record(
    connection: Connection, changes: Sequence[DocumentChange], records: NewRecords, events_after: int
) -> int:
    """Append the records and write the versions; returns the seq of the `rules-applied` event.

    The append locks the record log. The versions come after it: they are few cheap rows that no
    other transaction writes. `events_after` is the number of events after `rules-applied`.
    """
    last = await append_records(connection, records)
    assert last is not None
    seq = last - events_after - len(records.steps) - len(records.calculated)
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


def _applied_event(plan: ApplyPlan, actor: Actor) -> NewEvent:
    listed = [
        {"kind": change.kind, "name": change.name, "version": change.version, "outcome": change.outcome}
        for change in plan.effective
    ]
    return NewEvent(
        ts=actor.now,
        origin="caused",
        type="rules-applied",
        payload={"count": len(listed), "documents": listed[:_MAX_LISTED], "who": actor.who, "via": actor.via},
    )
