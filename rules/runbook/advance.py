"""Applies the outcome of a step to the active steps of a run. Pure: no I/O, and time is an
argument.

`active` maps the number of a step to {"attempt", "state"} and flags. The states are `due` (a worker
performs it), `waiting` (for a timer, an event, a report, or its branches), and `failed` or
`timed_out`: such a step keeps its entry, so that an operator can retry it. A run without an entry
that is due or waiting has ended.

| flag | meaning |
|---|---|
| `lapsed` | true: the timer of the step fired, so its wait has timed out or its report is late |
| `met` | seq of the event that ended its wait |
| `report` | the report about a `dispatch` |
| `last` | number of the last attempt, after an operator granted more of them |
| `held` | keys of the suppressions that hold the step; it keeps its other flags |
| `rest`, `seq`, `remind` | of a notification: why it waits, the newest event, an ended suppression |

The entry of a notification also has its queue (`rules.runbook.notification_queue`).

The steps of `finally` begin when all others have ended, or when the run is cancelled. They begin once
in a run: `ending` is stored with the run, and a retry of dead steps does not begin them again.

A failure inside a `parallel` ends its own branch only. The others run to their end, because a
message that cannot be sent must not keep the next one from being sent. The `parallel` has failed
when all branches have ended and one has failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from rules.runbook.backoff import delay_before
from rules.runbook.effects import (
    AwaitedEvent,
    Effect,
    EmittedEvent,
    FinallyBegin,
    RunEnd,
    StepAnswer,
    StepRecord,
    WaitTimer,
)
from rules.runbook.notification_queue import rest_after_fault, retried_queue
from rules.runbook.outcomes import Completed, Failed, Held, Outcome, Paused, Rested, TimedOut
from rules.runbook.program import Node, Program
from rules.runbook.states import ACTIVE_STEP, DEAD

Entry = dict[str, Any]
Active = Mapping[str, Mapping[str, Any]]


@dataclass
class Advance:
    """The active steps afterwards, and the effects to write."""

    active: dict[str, Entry]
    """Entry of each step that is not completed, by step number."""
    effects: list[Effect] = field(default_factory=list)
    ending: str | None = None
    """Why the run ends, once `finally` has begun: `ended` or `cancelled`."""

    def due(self, number: int, attempt: int = 1, **entry: Any) -> None:
        self.active[str(number)] = {"attempt": attempt, "state": "due", **entry}
        self.effects.append(StepRecord(number, attempt, "due"))


def advance(
    program: Program,
    active: Active,
    number: int,
    outcome: Outcome,
    at: datetime,
    salt: str,
    ending: str | None = None,
) -> Advance:
    """Apply the outcome of a step that is due. `salt` names the run, for the jitter of its
    delays."""
    node = program.nodes[number]
    entry = active[str(number)]
    result = Advance({step: dict(value) for step, value in active.items()}, ending=ending)
    if isinstance(outcome, Completed):
        _completed(program, node, entry, outcome, result)
    elif isinstance(outcome, Paused):
        _paused(node, entry, outcome, result)
    elif isinstance(outcome, Held):
        result.active[str(number)] = {**entry, "state": "waiting", "held": list(outcome.held_by)}
        held = {"held_by": list(outcome.held_by), "reason": outcome.reason}
        result.effects.append(StepRecord(number, entry["attempt"], "waiting", held))
        if outcome.check_at is not None:
            result.effects.append(WaitTimer(number, outcome.check_at, {"attempt": entry["attempt"]}))
    elif isinstance(outcome, Rested):
        _rested(node, entry, outcome, result)
    else:
        _failed(program, node, entry, outcome, _Retry(at, f"{salt}/{number}"), result)
    return result


def retry_dead_steps(program: Program, active: Active) -> Advance:
    """Grant another round of attempts to every dead step. A `parallel` waits for its branches
    again."""
    result = Advance({step: dict(entry) for step, entry in active.items()})
    for step, entry in _by_number(active):
        node = program.nodes[int(step)]
        if entry["state"] not in DEAD:
            continue
        if node.kind == "parallel":
            result.active[step] = {"attempt": entry["attempt"], "state": "waiting"}
            continue
        attempt = entry["attempt"] + 1
        if node.kind == "notify":
            result.due(node.number, attempt, **retried_queue(entry))
            continue
        result.due(node.number, attempt, last=entry["attempt"] + node.attempts)
    return result


def begin_finally(program: Program, ending: str | None, reason: str) -> Advance | None:
    """Cancel a run by its `finally`. None if it has none or has begun it: the run ends at once."""
    if program.first_final is None or ending is not None:
        return None
    result = Advance({}, [FinallyBegin("cancelled", reason)], "cancelled")
    result.due(program.first_final)
    return result


@dataclass(frozen=True)
class _Retry:
    at: datetime
    salt: str


def _completed(
    program: Program, node: Node, entry: Mapping[str, Any], outcome: Completed, result: Advance
) -> None:
    if node.kind == "parallel":
        # The branches begin, and the step waits for them.
        result.active[str(node.number)] = {"attempt": entry["attempt"], "state": "waiting"}
        result.effects.append(StepRecord(node.number, entry["attempt"], "waiting", outcome.answer))
        for head in node.heads:
            assert head is not None
            result.due(head)
        return
    del result.active[str(node.number)]
    if outcome.event is not None:
        result.effects.append(EmittedEvent(outcome.event))
    result.effects.append(StepRecord(node.number, entry["attempt"], "completed", outcome.answer))
    result.effects.append(StepAnswer(node.name, {"state": "completed", **outcome.answer}))
    following = node.following if outcome.branch is None else node.heads[outcome.branch]
    _continue(program, node, following, result)


def _paused(node: Node, entry: Mapping[str, Any], outcome: Paused, result: Advance) -> None:
    attempt = entry["attempt"]
    result.active[str(node.number)] = {**_kept(entry), "attempt": attempt, "state": "waiting"}
    until = {"until": outcome.until.isoformat()} if outcome.until is not None else {}
    result.effects.append(StepRecord(node.number, attempt, "waiting", {**outcome.answer, **until}))
    if outcome.condition is not None:
        result.effects.append(AwaitedEvent(node.number, attempt, outcome.condition))
    if outcome.until is not None:
        result.effects.append(WaitTimer(node.number, outcome.until, {"attempt": attempt, "lapsed": True}))


def _rested(node: Node, entry: Mapping[str, Any], outcome: Rested, result: Advance) -> None:
    number, attempt = node.number, entry["attempt"]
    if outcome.event is not None:
        result.effects.append(EmittedEvent(outcome.event))
    if entry.get("seq", 0) > outcome.seq:
        # An event came while the step was performed: it is performed again, with what the event set.
        result.effects.append(StepRecord(number, attempt, "waiting", outcome.answer))
        fresh = {key: entry[key] for key in ("seq", "remind") if key in entry}
        result.due(number, attempt + 1, **{**outcome.entry, **fresh})
        return
    if outcome.end is not None:
        result.effects.append(StepRecord(number, attempt, outcome.end, outcome.answer))
        if outcome.end == "completed":
            del result.active[str(number)]
        else:
            kept = {"attempt": attempt, "state": outcome.end, "error": outcome.error or ""}
            result.active[str(number)] = {**outcome.entry, **kept}
        result.effects.append(RunEnd(outcome.end, outcome.error))
        return
    rest = {"attempt": attempt + 1, "state": "waiting", "rest": outcome.rest, "seq": outcome.seq}
    held = {"held": list(outcome.held_by)} if outcome.held_by else {}
    result.active[str(number)] = {**outcome.entry, **rest, **held}
    until = {"until": outcome.until.isoformat()} if outcome.until is not None else {}
    result.effects.append(StepRecord(number, attempt, "waiting", {**outcome.answer, **until}))
    if outcome.until is not None:
        result.effects.append(WaitTimer(number, outcome.until, {"attempt": attempt + 1}))


def _failed(
    program: Program,
    node: Node,
    entry: Mapping[str, Any],
    outcome: Failed | TimedOut,
    retry: _Retry,
    result: Advance,
) -> None:
    attempt = entry["attempt"]
    if node.kind == "notify":
        # Such a failure is none of a delivery: the queue is tried again later.
        _rested(node, entry, rest_after_fault(entry, outcome.error, retry.at, retry.salt), result)
        return
    state = "timed_out" if isinstance(outcome, TimedOut) else "failed"
    answer = {"error": outcome.error, **(outcome.answer if isinstance(outcome, Failed) else {})}
    permanent = isinstance(outcome, Failed) and outcome.permanent
    last = entry.get("last", node.attempts)
    if not permanent and attempt < last:
        # Delays start again with each round of attempts.
        next_in_round = attempt + 1 - (last - node.attempts)
        delay = delay_before(node.step.retry_policy, next_in_round, retry.salt)
        if isinstance(outcome, Failed) and outcome.retry_after is not None:
            delay = max(delay, outcome.retry_after)
        retry_at = retry.at + delay
        result.active[str(node.number)] = {**_kept(entry), "attempt": attempt + 1, "state": "waiting"}
        waiting = {**answer, "outcome": state, "until": retry_at.isoformat()}
        result.effects.append(StepRecord(node.number, attempt, "waiting", waiting))
        result.effects.append(WaitTimer(node.number, retry_at, {"attempt": attempt + 1}))
        return
    result.effects.append(StepRecord(node.number, attempt, state, answer))
    result.effects.append(StepAnswer(node.name, {"state": state, **answer}))
    _give_up(program, node, {"attempt": attempt, "state": state, "error": outcome.error}, result)


def _give_up(program: Program, node: Node, entry: Entry, result: Advance) -> None:
    """End a step, or a whole `parallel`, that has failed for good."""
    if node.step.on_failure == "continue":
        for step in [step for step in result.active if program.contains(node.number, int(step))]:
            del result.active[step]
        result.active.pop(str(node.number), None)
        _continue(program, node, node.following, result)
        return
    result.active[str(node.number)] = entry
    _ended(program, node, result)


def _continue(program: Program, node: Node, following: int | None, result: Advance) -> None:
    if following is not None:
        result.due(following)
    else:
        _ended(program, node, result)


def _ended(program: Program, node: Node, result: Advance) -> None:
    """End the list that the node is in: a branch, or the run."""
    if node.inside is None:
        _end_run(program, result)
        return
    outer = program.nodes[node.inside]
    inside = {
        step: entry for step, entry in result.active.items() if program.contains(outer.number, int(step))
    }
    if any(entry["state"] in ACTIVE_STEP for entry in inside.values()):
        return
    entry = result.active[str(outer.number)]
    if not inside:
        del result.active[str(outer.number)]
        result.effects.append(StepRecord(outer.number, entry["attempt"], "completed"))
        _continue(program, outer, outer.following, result)
        return
    state, error = _state_and_error(program, inside)
    result.effects.append(StepRecord(outer.number, entry["attempt"], state, {"error": error}))
    _give_up(program, outer, {"attempt": entry["attempt"], "state": state, "error": error}, result)


def _end_run(program: Program, result: Advance) -> None:
    """End the run, or begin its `finally`."""
    if any(entry["state"] in ACTIVE_STEP for entry in result.active.values()):
        # An operator retried steps before `finally` and in it: the other list is not over.
        return
    if result.active:
        end = RunEnd(*_state_and_error(program, result.active))
    else:
        end = RunEnd("cancelled" if result.ending == "cancelled" else "completed")
    if program.first_final is None or result.ending is not None:
        result.effects.append(end)
        return
    result.ending = "ended"
    result.effects.append(FinallyBegin("ended", end.error))
    result.due(program.first_final)


def _state_and_error(program: Program, dead: Active) -> tuple[str, str]:
    """`timed_out` only if no step failed. The error names the dead steps, not the `parallel` around
    them."""
    steps = [(program.nodes[int(step)], entry) for step, entry in _by_number(dead)]
    errors = [(node.name, entry) for node, entry in steps if node.kind != "parallel"]
    state = "failed" if any(entry["state"] == "failed" for _, entry in errors) else "timed_out"
    if len(program.nodes) == 1:
        return state, errors[0][1]["error"]
    return state, "; ".join(f"step {name}: {entry['error']}" for name, entry in errors)


def _by_number(active: Active) -> list[tuple[str, Mapping[str, Any]]]:
    return sorted(active.items(), key=lambda item: int(item[0]))


def _kept(entry: Mapping[str, Any]) -> Entry:
    """The flags of an entry that later attempts keep."""
    return {"last": entry["last"]} if "last" in entry else {}
