"""The outcome of a step, committed together with what follows from it.

Guarantee: `settle` writes the outcome, the steps that are due next, the timers and waits it needs and the end of the
action in one transaction, in the phases timers, entities, append; or it writes nothing and returns False, because the
action is no longer as it was read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from psycopg.types.json import Jsonb

from rules.actions.queue import begin_turns
from rules.actions.store import Action
from rules.lanes.lineage import keep_lineages
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
from tocsin.core.db import Connection, retrying, statement
from tocsin.core.errors import Conflict
from tocsin.core.record_log import append_records
from tocsin.core.records import NewEvent, NewStep, Records

_log = structlog.get_logger()
_OWN = "schedule:"
# What all answers of an action may take in its row; what comes after keeps its outcome only.
MAX_ANSWERS_BYTES = 200_000


async def settle(connection: Connection, action: Action, step: int, outcome: Outcome) -> bool:
    """False: read the action again, and see whether the step is still yours."""
    after = advance(action.program, action.active, step, outcome, action.at, str(action.id))
    change = Change.of(action, after, step)
    if not await write(connection, action, change):
        return False
    if change.finished is not None and change.finished.state != "completed":
        _log.error("action ended", action=action.name, id=action.id, **vars(change.finished))
    return True


async def give_up(connection: Connection, action: Action, step: int, error: str) -> bool:
    """The document cannot be read, so nothing follows: the action ends here. A person may try again."""
    attempt = action.entry(step)["attempt"]
    change = Change(
        active={str(step): {"attempt": attempt, "state": "failed", "error": error}},
        state="failed",
        steps=[Recorded(step, attempt, "failed", {"error": error})],
        finished=Finished("failed", error),
    )
    return await write(connection, action, change)


@dataclass(frozen=True)
class Change:
    """What a transaction writes about one action."""

    active: Mapping[str, Any]
    state: str
    steps: Sequence[Recorded] = ()
    armed: Sequence[Armed] = ()
    awaited: Sequence[Awaited] = ()
    answers: Mapping[str, Any] | None = None
    finished: Finished | None = None
    events: Sequence[NewEvent] = ()
    woken: int | None = None
    """A step that something else than its timer has woken: the timer is still there."""
    heard: Sequence[int] = ()
    """Steps that no longer wait for an event."""

    @classmethod
    def of(cls, action: Action, after: Advance, step: int) -> Change:
        finished = next((one for one in after.effects if isinstance(one, Finished)), None)
        entry = action.entry(step)
        return cls(
            active=after.active,
            state="running" if finished is None else finished.state,
            steps=[one for one in after.effects if isinstance(one, Recorded)],
            armed=[one for one in after.effects if isinstance(one, Armed)],
            awaited=[one for one in after.effects if isinstance(one, Awaited)],
            answers=_answers(action, after.effects),
            finished=finished,
            events=[one.event for one in after.effects if isinstance(one, Emitted)],
            woken=step if "report" in entry or "met" in entry else None,
            heard=[step] if "met" in entry or "lapsed" in entry else [],
        )


async def write(connection: Connection, action: Action, change: Change) -> bool:
    """False if the action has moved on since it was read."""

    async def once() -> None:
        async with connection.transaction():
            await _timers(connection, action, change)
            begun = await _entities(connection, action, change)
            steps = [*(new_step(action, one) for one in change.steps), *begun]
            await append_records(connection, Records(events=change.events, steps=steps))
            if change.awaited:
                await _await_events(connection, action, change.awaited)

    try:
        await retrying(once)
    except Conflict:
        return False
    if change.finished is not None:
        ACTIONS.add(1, change.finished.state)
    return True


async def _timers(connection: Connection, action: Action, change: Change) -> None:
    ref = str(action.id)
    if change.finished is not None or change.woken is not None:
        keys = None if change.finished is not None else [str(change.woken)]
        await connection.execute(statement("rules.actions/remove_waits"), {"ref": ref, "keys": keys})
    if change.armed:
        columns = {
            "ref": ref,
            "keys": [str(one.step) for one in change.armed],
            "fire_at": [one.at for one in change.armed],
            "payloads": [Jsonb({"step": str(one.step), **one.entry}) for one in change.armed],
        }
        await connection.execute(statement("rules.actions/arm_waits"), columns)


async def _entities(connection: Connection, action: Action, change: Change) -> list[NewStep]:
    """Also whatever was queued behind the action, which may begin now."""
    finished = change.finished
    if finished is not None:
        await judge_schedule(connection, action, "fired" if finished.state == "completed" else "failed")
    last = change.steps[-1] if change.steps else None
    row = {
        "id": action.id,
        "version": action.version,
        "active": Jsonb(change.active),
        "answers": Jsonb(dict(change.answers or {})),
        "state": change.state,
        "result": Jsonb(dict(last.result)) if finished is not None and last is not None else None,
        "error": None if finished is None else finished.error,
    }
    if (await connection.execute(statement("rules.actions/move_action"), row)).rowcount == 0:
        raise Conflict("changed by another transaction")
    if change.heard:
        heard = {"id": action.id, "steps": list(change.heard)}
        await connection.execute(statement("rules.actions/forget_event_waits"), heard)
    await keep_lineages(connection, {event.id: action.next_lineage for event in change.events})
    return await begin_turns(connection, [action]) if finished is not None else []


async def judge_schedule(connection: Connection, action: Action, status: str) -> None:
    """Only an action that a schedule carries itself speaks for it."""
    if action.rule.startswith(_OWN):
        values = {"owner": action.owner, "name": action.rule.removeprefix(_OWN), "status": status}
        await connection.execute(statement("rules.actions/judge_schedule"), values)


async def _await_events(connection: Connection, action: Action, awaited: Sequence[Awaited]) -> None:
    columns = {
        "id": action.id,
        "steps": [one.step for one in awaited],
        "attempts": [one.attempt for one in awaited],
        "conditions": [one.condition for one in awaited],
    }
    await connection.execute(statement("rules.actions/await_events"), columns)


def new_step(action: Action, one: Recorded) -> NewStep:
    return NewStep(
        action_id=action.id,
        name=action.name,
        owner=action.owner,
        step=one.step,
        attempt=one.attempt,
        state=one.state,
        correlation_id=action.correlation_id,
        source_event_id=action.event_id,
        result=one.result,
    )


def _answers(action: Action, effects: Sequence[Effect]) -> dict[str, Any]:
    answers = {one.name: dict(one.answer) for one in effects if isinstance(one, Answered)}
    if len(json.dumps({**action.answers, **answers})) <= MAX_ANSWERS_BYTES:
        return answers
    return {name: {"state": answer["state"], "dropped": True} for name, answer in answers.items()}
