"""What follows from the outcome of a step. Pure.

State: `active` maps the number of a step under way to {"attempt", "state"}. States are `due` (with the workers),
`waiting` (for a timer, an event, a report, or its branches), and `failed` or `timed_out`: such a step stays, so that it
can be tried again when a person says so. An action without an entry that is due or waiting has ended.

A failure inside a `parallel` ends its own branch only: the others run to their end, because a message that cannot
be sent must not keep the next one from being sent. The `parallel` has failed when all have ended and one has failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from rules.runbook.backoff import delay_before
from rules.runbook.effects import Answered, Armed, Awaited, Effect, Emitted, Finished, Recorded
from rules.runbook.outcomes import Completed, Failed, Outcome, Paused, TimedOut
from rules.runbook.program import Node, Program
from rules.runbook.states import ACTIVE_STEP, DEAD

Entry = dict[str, Any]
Active = Mapping[str, Mapping[str, Any]]


@dataclass
class Advance:
    """The steps under way afterwards, and what to write."""

    active: dict[str, Entry]
    effects: list[Effect] = field(default_factory=list)

    def due(self, number: int, attempt: int = 1, **entry: Any) -> None:
        self.active[str(number)] = {"attempt": attempt, "state": "due", **entry}
        self.effects.append(Recorded(number, attempt, "due"))


def advance(
    program: Program, active: Active, number: int, outcome: Outcome, at: datetime, salt: str
) -> Advance:
    """The step is due: whoever wakes one that waits makes it so first. `salt` names the action, for its jitter."""
    node = program.nodes[number]
    entry = active[str(number)]
    result = Advance({step: dict(one) for step, one in active.items()})
    if isinstance(outcome, Completed):
        _completed(program, node, entry, outcome, result)
    elif isinstance(outcome, Paused):
        _paused(node, entry, outcome, result)
    else:
        _tried(program, node, entry, outcome, _Retry(at, f"{salt}/{number}"), result)
    return result


def revive(program: Program, active: Active) -> Advance:
    """Another round of attempts for every step that ended the action; a `parallel` waits for its branches again."""
    result = Advance({step: dict(one) for step, one in active.items()})
    for step, entry in sorted(active.items(), key=lambda one: int(one[0])):
        node = program.nodes[int(step)]
        if entry["state"] not in DEAD:
            continue
        if node.kind == "parallel":
            result.active[step] = {"attempt": entry["attempt"], "state": "waiting"}
            continue
        attempt = entry["attempt"] + 1
        result.due(node.number, attempt, last=entry["attempt"] + node.attempts)
    return result


@dataclass(frozen=True)
class _Retry:
    at: datetime
    salt: str


def _completed(
    program: Program, node: Node, entry: Mapping[str, Any], outcome: Completed, result: Advance
) -> None:
    if node.kind == "parallel":
        # It is reached: its branches begin, and it waits for them.
        result.active[str(node.number)] = {"attempt": entry["attempt"], "state": "waiting"}
        result.effects.append(Recorded(node.number, entry["attempt"], "waiting", outcome.answer))
        for head in node.heads:
            assert head is not None
            result.due(head)
        return
    del result.active[str(node.number)]
    if outcome.event is not None:
        result.effects.append(Emitted(outcome.event))
    result.effects.append(Recorded(node.number, entry["attempt"], "completed", outcome.answer))
    result.effects.append(Answered(node.name, {"state": "completed", **outcome.answer}))
    following = node.following if outcome.way is None else node.heads[outcome.way]
    _go_on(program, node, following, result)


def _paused(node: Node, entry: Mapping[str, Any], outcome: Paused, result: Advance) -> None:
    attempt = entry["attempt"]
    result.active[str(node.number)] = {**_kept(entry), "attempt": attempt, "state": "waiting"}
    shown = {"until": outcome.until.isoformat()} if outcome.until is not None else {}
    result.effects.append(Recorded(node.number, attempt, "waiting", {**outcome.answer, **shown}))
    if outcome.condition is not None:
        result.effects.append(Awaited(node.number, attempt, outcome.condition))
    if outcome.until is not None:
        result.effects.append(Armed(node.number, outcome.until, {"attempt": attempt, "lapsed": True}))


def _tried(
    program: Program,
    node: Node,
    entry: Mapping[str, Any],
    outcome: Failed | TimedOut,
    retry: _Retry,
    result: Advance,
) -> None:
    attempt = entry["attempt"]
    state = "timed_out" if isinstance(outcome, TimedOut) else "failed"
    said = {"error": outcome.error, **(outcome.answer if isinstance(outcome, Failed) else {})}
    permanent = isinstance(outcome, Failed) and outcome.permanent
    last = entry.get("last", node.attempts)
    if not permanent and attempt < last:
        # Counted from the beginning of this round of attempts.
        next_in_round = attempt + 1 - (last - node.attempts)
        delay = delay_before(node.step.retry_policy, next_in_round, retry.salt)
        if isinstance(outcome, Failed) and outcome.retry_after is not None:
            delay = max(delay, outcome.retry_after)
        again_at = retry.at + delay
        result.active[str(node.number)] = {**_kept(entry), "attempt": attempt + 1, "state": "waiting"}
        shown = {**said, "outcome": state, "until": again_at.isoformat()}
        result.effects.append(Recorded(node.number, attempt, "waiting", shown))
        result.effects.append(Armed(node.number, again_at, {"attempt": attempt + 1}))
        return
    result.effects.append(Recorded(node.number, attempt, state, said))
    result.effects.append(Answered(node.name, {"state": state, **said}))
    _dead(program, node, {"attempt": attempt, "state": state, "error": outcome.error}, result)


def _dead(program: Program, node: Node, entry: Entry, result: Advance) -> None:
    """A step, or a whole `parallel`, has failed for good."""
    if node.step.on_failure == "continue":
        for step in [step for step in result.active if program.contains(node.number, int(step))]:
            del result.active[step]
        result.active.pop(str(node.number), None)
        _go_on(program, node, node.following, result)
        return
    result.active[str(node.number)] = entry
    _ended(program, node, result)


def _go_on(program: Program, node: Node, following: int | None, result: Advance) -> None:
    if following is not None:
        result.due(following)
    else:
        _ended(program, node, result)


def _ended(program: Program, node: Node, result: Advance) -> None:
    """The end of the list that the node stands in: of a branch, or of the action."""
    if node.inside is None:
        result.effects.append(_finish(program, result.active))
        return
    outer = program.nodes[node.inside]
    inside = {step: one for step, one in result.active.items() if program.contains(outer.number, int(step))}
    if any(one["state"] in ACTIVE_STEP for one in inside.values()):
        return
    entry = result.active[str(outer.number)]
    if not inside:
        del result.active[str(outer.number)]
        result.effects.append(Recorded(outer.number, entry["attempt"], "completed"))
        _go_on(program, outer, outer.following, result)
        return
    state, error = _verdict(program, inside)
    result.effects.append(Recorded(outer.number, entry["attempt"], state, {"error": error}))
    _dead(program, outer, {"attempt": entry["attempt"], "state": state, "error": error}, result)


def _finish(program: Program, active: Active) -> Finished:
    if not active:
        return Finished("completed")
    return Finished(*_verdict(program, active))


def _verdict(program: Program, dead: Active) -> tuple[str, str]:
    """Timed out only if nothing failed. The error names the steps that are to blame, not what contains them."""
    steps = [
        (program.nodes[int(step)], entry) for step, entry in sorted(dead.items(), key=lambda one: int(one[0]))
    ]
    blamed = [(node.name, entry) for node, entry in steps if node.kind != "parallel"]
    state = "failed" if any(entry["state"] == "failed" for _, entry in blamed) else "timed_out"
    if len(program.nodes) == 1:
        return state, blamed[0][1]["error"]
    return state, "; ".join(f"step {name}: {entry['error']}" for name, entry in blamed)


def _kept(entry: Mapping[str, Any]) -> Entry:
    """What outlives an attempt: how many a person has granted."""
    return {"last": entry["last"]} if "last" in entry else {}
