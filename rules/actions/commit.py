"""Commits the outcome of a step together with everything that follows from it.

Guarantee: `commit_outcome` writes the outcome, the steps that are due next, the timers and event
waits of those steps and the end of the run in one transaction. Its phases are timers, entities,
append, event waits. If the run has changed since it was read, it writes nothing and returns False.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from psycopg.types.json import Jsonb

from rules.actions.queue import begin_queued
from rules.actions.run import ActionRun
from rules.lanes.lineage_store import insert_lineages
from rules.metrics import ACTIONS
from rules.runbook import (
    Advance,
    AwaitedEvent,
    Effect,
    EmittedEvent,
    FinallyBegin,
    Outcome,
    RunEnd,
    StepAnswer,
    StepRecord,
    WaitTimer,
    advance,
)
from rules.runbook.states import DEAD
from schemas.values.rule_ref import RuleRef
from schemas.wire.event_facts import is_manual
from tocsin.core.db import Connection, retrying, statement
from tocsin.core.errors import Conflict
from tocsin.core.record_log import append_records
from tocsin.core.records import NewEvent, NewRecords, NewStep

_log = structlog.get_logger()
MAX_ANSWERS_BYTES = 200_000
"""Size of all answers in the row of a run. Answers beyond it are stored without their content."""


async def commit_outcome(connection: Connection, run: ActionRun, step: int, outcome: Outcome) -> bool:
    """False if the run has changed since it was read: read it again, and check that the step is
    still due."""
    after = advance(run.program, run.active, step, outcome, run.read_at, str(run.id), run.ending)
    change = RunChange.of(run, after, step)
    if not await _commit(connection, run, change):
        return False
    if change.run_end is not None and change.run_end.state in DEAD:
        _log.error("action ended", action=run.name, id=run.id, **vars(change.run_end))
    return True


async def fail_run(connection: Connection, run: ActionRun, step: int, error: str) -> bool:
    """End a run whose document cannot be read, without its `finally`. An operator can retry it."""
    attempt = run.entry(step)["attempt"]
    change = RunChange(
        active={str(step): {"attempt": attempt, "state": "failed", "error": error}},
        state="failed",
        steps=[StepRecord(step, attempt, "failed", {"error": error})],
        run_end=RunEnd("failed", error),
    )
    return await _commit(connection, run, change)


@dataclass(frozen=True)
class RunChange:
    """Everything that a transaction writes about one run."""

    active: Mapping[str, Any]
    """Entry of each step that is not completed, by step number; see `rules.runbook.advance`."""
    state: str
    steps: Sequence[StepRecord] = ()
    timers: Sequence[WaitTimer] = ()
    awaited: Sequence[AwaitedEvent] = ()
    answers: Mapping[str, Any] | None = None
    finally_begin: FinallyBegin | None = None
    run_end: RunEnd | None = None
    events: Sequence[NewEvent] = ()
    woken_early: int | None = None
    """A step that an event or a report made due: its timer has not fired and is removed."""
    no_longer_awaited: Sequence[int] = ()
    """Steps whose event wait has ended."""

    @classmethod
    def of(cls, run: ActionRun, after: Advance, step: int) -> RunChange:
        run_end = next((effect for effect in after.effects if isinstance(effect, RunEnd)), None)
        return cls(
            active=after.active,
            state="running" if run_end is None else run_end.state,
            steps=[effect for effect in after.effects if isinstance(effect, StepRecord)],
            timers=[effect for effect in after.effects if isinstance(effect, WaitTimer)],
            awaited=[effect for effect in after.effects if isinstance(effect, AwaitedEvent)],
            answers=_answers(run, after.effects),
            finally_begin=next(
                (effect for effect in after.effects if isinstance(effect, FinallyBegin)), None
            ),
            run_end=run_end,
            events=[effect.event for effect in after.effects if isinstance(effect, EmittedEvent)],
            woken_early=step if run.was_woken_early(step) else None,
            no_longer_awaited=[step] if run.event_wait_has_ended(step) else [],
        )


async def _commit(connection: Connection, run: ActionRun, change: RunChange) -> bool:
    async def once() -> None:
        async with connection.transaction():
            await _write_timers(connection, run, change)
            await _write_entities(connection, run, change)
            # A run that ends lets the run that is queued behind it begin, in the same transaction.
            queued = await _begin_queued(connection, run) if change.run_end is not None else []
            steps = [*(new_step(run, record) for record in change.steps), *queued]
            await append_records(connection, NewRecords(events=change.events, steps=steps))
            # After the append: a wait stores the newest seq, so that only later events count.
            if change.awaited:
                await _put_event_waits(connection, run, change.awaited)

    try:
        await retrying(once)
    except Conflict:
        return False
    if change.run_end is not None:
        ACTIONS.add(1, change.run_end.state)
    return True


async def _write_timers(connection: Connection, run: ActionRun, change: RunChange) -> None:
    ref = str(run.id)
    if change.run_end is not None:
        await _remove_waits(connection, ref, None)
    elif change.woken_early is not None:
        await _remove_waits(connection, ref, [str(change.woken_early)])
    if change.timers:
        columns = {
            "ref": ref,
            "keys": [str(timer.step) for timer in change.timers],
            "fire_at": [timer.at for timer in change.timers],
            "payloads": [Jsonb({"step": str(timer.step), **timer.entry}) for timer in change.timers],
        }
        await connection.execute(statement("rules.actions/arm_waits"), columns)


async def _remove_waits(connection: Connection, ref: str, keys: Sequence[str] | None) -> None:
    """Remove the wait timers of some steps of a run, or all of them if `keys` is None."""
    await connection.execute(statement("rules.actions/remove_waits"), {"ref": ref, "keys": keys})


async def _write_entities(connection: Connection, run: ActionRun, change: RunChange) -> None:
    run_end, begin = change.run_end, change.finally_begin
    if run_end is not None and run_end.state != "cancelled":
        status = "fired" if run_end.state == "completed" else "failed"
        await set_schedule_status(connection, run, status)
    last = change.steps[-1] if change.steps else None
    row = {
        "id": run.id,
        "version": run.version,
        "active": Jsonb(change.active),
        "answers": Jsonb(dict(change.answers or {})),
        "state": change.state,
        "result": Jsonb(dict(last.result)) if run_end is not None and last is not None else None,
        "ending": None if begin is None else begin.ending,
        "error": (begin.error if begin is not None else None) if run_end is None else run_end.error,
        "held_by": _held_by(change.active) if run_end is None else None,
        "failing_since": _failing_since(change.active),
    }
    if (await connection.execute(statement("rules.actions/update_action"), row)).rowcount == 0:
        raise Conflict("the run was changed by another transaction")
    if change.no_longer_awaited:
        ended = {"id": run.id, "steps": list(change.no_longer_awaited)}
        await connection.execute(statement("rules.actions/delete_event_waits"), ended)
    await insert_lineages(connection, {event.id: run.next_lineage for event in change.events})


async def _begin_queued(connection: Connection, run: ActionRun) -> list[NewStep]:
    """Begin the runs that are queued behind this one; returns the records of their first steps."""
    return await begin_queued(connection, [(run.rule, run.group_key)])


async def set_schedule_status(connection: Connection, run: ActionRun, status: str) -> None:
    """If this run is the action of a one-shot schedule, set the status of that schedule. Does
    nothing for other runs, nor for one that `tocsin schedule run` started."""
    rule = RuleRef.parse(run.rule)
    if rule.kind == "schedule" and not is_manual("scheduled", run.event_id, run.correlation_id):
        values = {"owner": run.owner, "name": rule.name, "status": status}
        await connection.execute(statement("rules.actions/set_schedule_status"), values)


async def _put_event_waits(connection: Connection, run: ActionRun, awaited: Sequence[AwaitedEvent]) -> None:
    columns = {
        "id": run.id,
        "steps": [wait.step for wait in awaited],
        "attempts": [wait.attempt for wait in awaited],
        "conditions": [wait.condition for wait in awaited],
    }
    await connection.execute(statement("rules.actions/put_event_waits"), columns)


def new_step(run: ActionRun, record: StepRecord) -> NewStep:
    return NewStep(
        action_id=run.id,
        name=run.name,
        owner=run.owner,
        step=record.step,
        attempt=record.attempt,
        state=record.state,
        correlation_id=run.correlation_id,
        source_event_id=run.event_id,
        result=record.result,
    )


def _held_by(active: Mapping[str, Any]) -> list[str] | None:
    return sorted({key for entry in active.values() for key in entry.get("held", ())}) or None


def _failing_since(active: Mapping[str, Any]) -> str | None:
    """Since when the channel of a notification fails."""
    since = (entry.get("channel", {}).get("failing_since") for entry in active.values())
    return next((instant for instant in since if instant), None)


def _answers(run: ActionRun, effects: Sequence[Effect]) -> dict[str, Any]:
    """The new answers. If all answers together exceed MAX_ANSWERS_BYTES, only the state of each new
    one is kept, with `dropped`."""
    answers = {effect.name: dict(effect.answer) for effect in effects if isinstance(effect, StepAnswer)}
    if len(json.dumps({**run.answers, **answers})) <= MAX_ANSWERS_BYTES:
        return answers
    return {name: {"state": answer["state"], "dropped": True} for name, answer in answers.items()}
