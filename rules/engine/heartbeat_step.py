"""Evaluates heartbeats: check-ins, the passing of time, arrival gaps. Pure.

Guarantee: the result depends on check-ins, by their arrival, and on arrival gaps alone. A check-in at the
very instant of a deadline is in time. Deadlines before an input pass first, at their nominal times.

A check-in meets the expected time if it comes at `opens_at` or later; one that comes earlier is recorded
and meets nothing. A start meets it as well: the run then has to end within `max_duration`. The end of a
run whose start met an expected time meets no other one. A success resolves the alarm; a fail opens it.
A deadline opens it as `late`, a run that does not end as `overrun`.

While nothing could arrive, no check-in is late (docs/decisions/0032): an arrival gap of at most
`RETRIED`, the time for which clients repeat a check-in, moves the deadlines behind its end. A longer one
may have swallowed the check-in, so the expected time is replaced by the first one after the gap. Only
the first such gap since the last check-in does this. Otherwise a job that ended would stay unnoticed if
there is a gap every night.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from rules.engine.effects import Cause, Effects
from rules.engine.heartbeat_rule import HeartbeatRule
from rules.engine.heartbeat_state import MAX_RUNS, HeartbeatRun, HeartbeatState
from rules.engine.inputs import Arrival
from rules.engine.state import FiringSeries, RuleState
from rules.engine.transitions import EvaluatedInput, end, transition
from schemas.wire.check_in import CheckIn, read_check_in
from tocsin.core.instant import MICROSECOND, instant_text

RETRIED = timedelta(seconds=30)
Result = tuple[RuleState, Effects]


def begin_heartbeat(rule: HeartbeatRule, owner: str, state: RuleState, at: datetime) -> Result:
    """Begin to expect an owner at an instant, or continue under changed times.

    An alarm stays open until a check-in resolves it. Runs that have started keep their limits.
    """
    if state.heartbeat is not None and state.fingerprint == rule.fingerprint:
        return state, ()
    if owner not in rule.owners:
        ended, effects = end(state, at, "rule-changed", "the rule no longer covers it")
        return ended._replace(heartbeat=None, fingerprint=rule.fingerprint), effects
    before = state.heartbeat
    begun = _expect(rule, HeartbeatState(at) if before is None else before._replace(begun_at=at), None, at)
    begun = begun._replace(gap_began_at=None, gap_ended_at=None)
    return state._replace(heartbeat=begun, fingerprint=rule.fingerprint), ()


def step_heartbeat(rule: HeartbeatRule, state: RuleState, arrival: Arrival) -> Result:
    """Evaluate a check-in. One of an owner that is not expected, or with an older `ts`, has no effect."""
    if arrival.owner not in rule.owners:
        return state, ()
    state, effects = begin_heartbeat(rule, arrival.owner, state, arrival.at)
    state, more = pass_heartbeat(rule, arrival.owner, state, arrival.at - MICROSECOND)
    effects += more
    try:
        check_in = read_check_in(arrival.value, arrival.labels)
    except ValueError:
        return state, effects
    if arrival.is_late:
        return state, effects
    state, more = _check_in(rule, state, arrival, check_in)
    return state, effects + more


def pass_heartbeat(rule: HeartbeatRule, owner: str, state: RuleState, until: datetime) -> Result:
    """Pass the deadlines at or before an instant, in order."""
    effects: Effects = ()
    while (beat := state.heartbeat) is not None:
        due_at = beat.next_due_at
        if due_at is None or due_at > until:
            break
        # A run that does not end is the reason why the next one does not start.
        if any(run.due_at == due_at for run in beat.runs.values()):
            state, more = _overrun(rule, owner, state, beat, due_at)
        else:
            state, more = _miss(rule, owner, state, beat, until)
        effects += more
    return state, effects


def pass_gap(
    rule: HeartbeatRule, owner: str, state: RuleState, began_at: datetime, ended_at: datetime
) -> Result:
    """An arrival gap has ended: nothing could arrive since it began."""
    state, effects = pass_heartbeat(rule, owner, state, began_at - MICROSECOND)
    beat = state.heartbeat
    if beat is None or ended_at <= beat.begun_at:
        return state, effects
    is_short = ended_at - began_at <= RETRIED
    beat = _with_runs_after_gap(beat, began_at, ended_at, is_short)
    beat = _with_expectation_after_gap(rule, beat, began_at, ended_at, is_short)
    return (state if beat == state.heartbeat else state._replace(heartbeat=beat)), effects


def _with_expectation_after_gap(
    rule: HeartbeatRule, beat: HeartbeatState, began_at: datetime, ended_at: datetime, is_short: bool
) -> HeartbeatState:
    expected_at, due_at = beat.expected_at, beat.due_at
    if expected_at is None or due_at is None or began_at > due_at:
        return beat
    if rule.interval is None and ended_at < expected_at:
        return beat
    if is_short:
        return beat._replace(due_at=max(due_at, ended_at + RETRIED))
    if beat.gap_ended_at is not None:
        return beat._replace(due_at=max(due_at, ended_at + rule.grace))
    return _expect(rule, beat, None, ended_at)._replace(gap_began_at=began_at, gap_ended_at=ended_at)


def _with_runs_after_gap(
    beat: HeartbeatState, began_at: datetime, ended_at: datetime, is_short: bool
) -> HeartbeatState:
    """A run whose end may have been swallowed is forgotten."""
    runs: dict[str, HeartbeatRun] = {}
    for id, run in beat.runs.items():
        if run.due_at is None or run.due_at < began_at:
            runs[id] = run
        elif is_short:
            runs[id] = run._replace(due_at=max(run.due_at, ended_at + RETRIED))
    return beat if runs == beat.runs else beat._replace(runs=runs)


def _expect(
    rule: HeartbeatRule, beat: HeartbeatState, before: datetime | None, after: datetime
) -> HeartbeatState:
    """Expect the first time after an instant; `before` is the expected time before it."""
    expected_at = rule.expected_after(after)
    if expected_at is None:
        return beat._replace(expected_at=None, opens_at=None, due_at=None)
    opens_at = after if rule.interval is not None else rule.opens_at(before, expected_at)
    return beat._replace(expected_at=expected_at, opens_at=opens_at, due_at=expected_at + rule.grace)


def _check_in(rule: HeartbeatRule, state: RuleState, arrival: Arrival, check_in: CheckIn) -> Result:
    beat, at = state.heartbeat, arrival.at
    assert beat is not None
    run = beat.runs.get(check_in.run)
    is_end = check_in.status != "start"
    meets = (
        beat.expected_at is not None
        and beat.opens_at is not None
        and at >= beat.opens_at
        and not (is_end and run is not None and run.is_expected and rule.interval is None)
    )
    if meets:
        assert beat.expected_at is not None
        behind = at if rule.interval is not None else max(at, beat.expected_at)
        beat = _expect(rule, beat, beat.expected_at, behind)
    runs = {id: other for id, other in beat.runs.items() if id != check_in.run}
    duration_s = check_in.duration_s
    if not is_end:
        due_at = beat.due_at if rule.max_duration is None else at + rule.max_duration
        runs[check_in.run] = HeartbeatRun(at, due_at, meets)
        runs = dict(sorted(runs.items(), key=lambda item: (item[1].started_at, item[0]))[-MAX_RUNS:])
    elif duration_s is None and run is not None:
        duration_s = (at - run.started_at).total_seconds()
    beat = beat._replace(
        runs=runs,
        last_at=at,
        last_status=check_in.status,
        last_duration_s=duration_s if is_end else beat.last_duration_s,
        last_success_at=at if check_in.status == "success" else beat.last_success_at,
        missed=0 if check_in.status != "start" or meets else beat.missed,
        gap_began_at=None,
        gap_ended_at=None,
    )
    state = state._replace(heartbeat=beat)
    if check_in.status == "fail":
        return _fire(rule, arrival.owner, state, "failed", at, _failed(arrival.owner, check_in, duration_s))
    if check_in.status == "success" and state.firing_series:
        return transition(rule, state, {}, _evaluated(rule, arrival.owner, at, "success"))
    return state, ()


def _miss(rule: HeartbeatRule, owner: str, state: RuleState, beat: HeartbeatState, until: datetime) -> Result:
    """No check-in came for the expected time."""
    expected_at, due_at = beat.expected_at, beat.due_at
    assert expected_at is not None
    assert due_at is not None
    facts = {
        "expected_at": instant_text(expected_at),
        "last_at": None if beat.last_at is None else instant_text(beat.last_at),
        "message": _late_text(owner, beat, expected_at),
    }
    missed = beat.missed + 1
    following = _expect(rule, beat, expected_at, expected_at)
    if rule.interval is not None and following.due_at is not None and following.due_at <= until:
        # All later ones before `until` are missed as well: one step instead of one for each.
        others = (until - following.due_at) // rule.interval + 1
        missed += others
        following = _expect(rule, beat, expected_at, expected_at + others * rule.interval)
    state = state._replace(heartbeat=following._replace(missed=missed))
    return _fire(rule, owner, state, "late", due_at, facts)


def _overrun(
    rule: HeartbeatRule, owner: str, state: RuleState, beat: HeartbeatState, due_at: datetime
) -> Result:
    """The first run that is due has not ended."""
    id = min(id for id, run in beat.runs.items() if run.due_at == due_at)
    run = beat.runs[id]
    state = state._replace(heartbeat=beat._replace(runs={**beat.runs, id: run._replace(due_at=None)}))
    lasts_s = (due_at - run.started_at).total_seconds()
    facts = {"run": id, "started_at": instant_text(run.started_at)}
    facts["message"] = f"{owner} has not ended {_span(lasts_s)} after its start at {_clock(run.started_at)}"
    return _fire(rule, owner, state, "overrun", due_at, facts)


def _fire(
    rule: HeartbeatRule, owner: str, state: RuleState, cause: Cause, at: datetime, facts: Mapping[str, Any]
) -> Result:
    """Open the alarm, or change an open one that has another cause."""
    firing = state.firing_series.get(rule.key)
    if firing is not None and not firing.is_resolved and (firing.cause == cause or firing.since == at):
        return state, ()
    since = at if firing is None or firing.is_resolved else firing.since
    begun = FiringSeries(
        since=since,
        due_at=since,
        cause=cause,
        value=cause,
        labels={},
        severity=rule.severity,
        first_value=cause,
        payload={"cause": cause, **facts},
    )
    return transition(rule, state, {rule.key: begun}, _evaluated(rule, owner, at, cause))


def _evaluated(rule: HeartbeatRule, owner: str, at: datetime, value: str) -> EvaluatedInput:
    return EvaluatedInput(at, owner, "", rule.key, value, is_time=True)


def _failed(owner: str, check_in: CheckIn, duration_s: float | None) -> dict[str, Any]:
    facts: dict[str, Any] = {"run": check_in.run}
    text = f"{owner} failed"
    if check_in.exit_code is not None:
        facts["exit_code"] = check_in.exit_code
        text += f" with exit code {check_in.exit_code}"
    if duration_s is not None:
        facts["duration_s"] = round(duration_s, 3)
        text += f" after {_span(duration_s)}"
    return {**facts, "message": text}


def _late_text(owner: str, beat: HeartbeatState, expected_at: datetime) -> str:
    last = f"the last one came at {_clock(beat.last_at)}" if beat.last_at is not None else "none came so far"
    return f"{owner} has not checked in, expected at {_clock(expected_at)}; {last}"


def _clock(instant: datetime) -> str:
    return instant_text(instant.replace(microsecond=0))


def _span(seconds: float) -> str:
    return f"{seconds:.1f}s" if seconds < 60 else f"{timedelta(seconds=round(seconds))}"
