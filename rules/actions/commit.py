"""Commits the outcome of a step together with everything that follows from it.

Guarantee: `commit_outcome` writes the outcome, the steps that are due next, the timers and event
waits it needs and the end of the run in one transaction, in the phases timers, entities, append. If
the run has changed since it was read, it writes nothing and returns False.
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
    Answered,
    Armed,
    Awaited,
    Effect,
    Emitted,
    Finished,
    Outcome,
    Recorded,
    advance,
)
from schemas.values.rule_ref import RuleRef
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
    after = advance(run.program, run.active, step, outcome, run.at, str(run.id))
    change = RunChange.of(run, after, step)
    if not await _commit(connection, run, change):
        return False
    if change.finished is not None and change.finished.state != "completed":
        _log.error("action ended", action=run.name, id=run.id, **vars(change.finished))
    return True


async def fail_run(connection: Connection, run: ActionRun, step: int, error: str) -> bool:
    """End a run whose document cannot be read. An operator can retry it."""
    attempt = run.entry(step)["attempt"]
    change = RunChange(
        active={str(step): {"attempt": attempt, "state": "failed", "error": error}},
        state="failed",
        steps=[Recorded(step, attempt, "failed", {"error": error})],
        finished=Finished("failed", error),
    )
    return await _commit(connection, run, change)


@dataclass(frozen=True)
class RunChange:
    """Everything that a transaction writes about one run."""

    active: Mapping[str, Any]
    state: str
    steps: Sequence[Recorded] = ()
    armed: Sequence[Armed] = ()
    awaited: Sequence[Awaited] = ()
    answers: Mapping[str, Any] | None = None
    finished: Finished | None = None
    events: Sequence[NewEvent] = ()
    woken_early: int | None = None
    """A step that an event or a report made due: its timer has not fired and is removed."""
    no_longer_awaited: Sequence[int] = ()
    """Steps whose event wait has ended."""

    @classmethod
    def of(cls, run: ActionRun, after: Advance, step: int) -> RunChange:
        finished = next((effect for effect in after.effects if isinstance(effect, Finished)), None)
        entry = run.entry(step)
        return cls(
            active=after.active,
            state="running" if finished is None else finished.state,
            steps=[effect for effect in after.effects if isinstance(effect, Recorded)],
            armed=[effect for effect in after.effects if isinstance(effect, Armed)],
            awaited=[effect for effect in after.effects if isinstance(effect, Awaited)],
            answers=_answers(run, after.effects),
            finished=finished,
            events=[effect.event for effect in after.effects if isinstance(effect, Emitted)],
            woken_early=step if "report" in entry or "met" in entry else None,
            no_longer_awaited=[step] if "met" in entry or "lapsed" in entry else [],
        )


async def _commit(connection: Connection, run: ActionRun, change: RunChange) -> bool:
    async def once() -> None:
        async with connection.transaction():
            await _write_timers(connection, run, change)
            begun = await _write_entities(connection, run, change)
            steps = [*(new_step(run, recorded) for recorded in change.steps), *begun]
            await append_records(connection, NewRecords(events=change.events, steps=steps))
            if change.awaited:
                await _put_event_waits(connection, run, change.awaited)

    try:
        await retrying(once)
    except Conflict:
        return False
    if change.finished is not None:
        ACTIONS.add(1, change.finished.state)
    return True


async def _write_timers(connection: Connection, run: ActionRun, change: RunChange) -> None:
    ref = str(run.id)
    if change.finished is not None or change.woken_early is not None:
        keys = None if change.finished is not None else [str(change.woken_early)]
        await connection.execute(statement("rules.actions/remove_waits"), {"ref": ref, "keys": keys})
    if change.armed:
        columns = {
            "ref": ref,
            "keys": [str(armed.step) for armed in change.armed],
            "fire_at": [armed.at for armed in change.armed],
            "payloads": [Jsonb({"step": str(armed.step), **armed.entry}) for armed in change.armed],
        }
        await connection.execute(statement("rules.actions/arm_waits"), columns)


async def _write_entities(connection: Connection, run: ActionRun, change: RunChange) -> list[NewStep]:
    """Returns the first steps of runs that were queued behind this one and begin now."""
    finished = change.finished
    if finished is not None:
        status = "fired" if finished.state == "completed" else "failed"
        await set_schedule_status(connection, run, status)
    last = change.steps[-1] if change.steps else None
    row = {
        "id": run.id,
        "version": run.version,
        "active": Jsonb(change.active),
        "answers": Jsonb(dict(change.answers or {})),
        "state": change.state,
        "result": Jsonb(dict(last.result)) if finished is not None and last is not None else None,
        "error": None if finished is None else finished.error,
    }
    if (await connection.execute(statement("rules.actions/update_action"), row)).rowcount == 0:
        raise Conflict("the run was changed by another transaction")
    if change.no_longer_awaited:
        ended = {"id": run.id, "steps": list(change.no_longer_awaited)}
        await connection.execute(statement("rules.actions/delete_event_waits"), ended)
    await insert_lineages(connection, {event.id: run.next_lineage for event in change.events})
    return [] if finished is None else await begin_queued(connection, [(run.rule, run.group_key)])


async def set_schedule_status(connection: Connection, run: ActionRun, status: str) -> None:
    """Set the status of a one-shot schedule whose own action this run is. Other runs change no
    schedule."""
    rule = RuleRef.parse(run.rule)
    if rule.kind == "schedule":
        values = {"owner": run.owner, "name": rule.name, "status": status}
        await connection.execute(statement("rules.actions/set_schedule_status"), values)


async def _put_event_waits(connection: Connection, run: ActionRun, awaited: Sequence[Awaited]) -> None:
    columns = {
        "id": run.id,
        "steps": [wait.step for wait in awaited],
        "attempts": [wait.attempt for wait in awaited],
        "conditions": [wait.condition for wait in awaited],
    }
    await connection.execute(statement("rules.actions/put_event_waits"), columns)


def new_step(run: ActionRun, recorded: Recorded) -> NewStep:
    return NewStep(
        action_id=run.id,
        name=run.name,
        owner=run.owner,
        step=recorded.step,
        attempt=recorded.attempt,
        state=recorded.state,
        correlation_id=run.correlation_id,
        source_event_id=run.event_id,
        result=recorded.result,
    )


def _answers(run: ActionRun, effects: Sequence[Effect]) -> dict[str, Any]:
    answers = {effect.name: dict(effect.answer) for effect in effects if isinstance(effect, Answered)}
    if len(json.dumps({**run.answers, **answers})) <= MAX_ANSWERS_BYTES:
        return answers
    return {name: {"state": answer["state"], "dropped": True} for name, answer in answers.items()}
