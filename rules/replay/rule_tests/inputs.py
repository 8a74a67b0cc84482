"""Schedules the inputs of a test in its world."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from rules.lanes.arrival_gap import ArrivalGap
from rules.replay.perform import probe_result
from rules.replay.rule_tests.instants import instant
from rules.replay.rule_tests.world import World
from schemas.documents.rule_test import Given, RuleTestDocument, expand
from schemas.values.duration import parse_duration
from schemas.wire.check_in import CheckIn
from schemas.wire.ingest_event import ingested_id


def schedule_input(world: World, given: Given, start: datetime) -> None:
    _SCHEDULE[given.kind](world, given, instant(given.at, start))


def outages(document: RuleTestDocument, start: datetime) -> list[ArrivalGap]:
    """The arrival gaps of a test. They are known before it starts, because they move deadlines."""
    gaps = [
        ArrivalGap(instant(given.at, start), instant(given.at, start) + given.outage)
        for given in document.given
        if given.outage is not None
    ]
    return sorted(gaps)


def _series(world: World, given: Given, at: datetime) -> None:
    assert given.values is not None
    assert given.every is not None
    values = expand(given.values)
    messages: dict[datetime, list[dict[str, Any]]] = {}
    for number, value in enumerate(values):
        if value is None:
            continue
        arrives_at = at if given.batch else at + number * given.every
        # In one message, the last value is as old as the message.
        ts = at - (len(values) - 1 - number) * given.every if given.batch else arrives_at
        if given.ts is not None:
            ts = _ts(given.ts, ts, world.start, number * given.every)
        datapoint = {"key": given.series, "value": value, "labels": given.labels}
        messages.setdefault(arrives_at, []).append({**datapoint, "ts": ts.isoformat()})
    for arrives_at, datapoints in messages.items():
        world.at(arrives_at, "receive", owner=given.owner, datapoints=datapoints)


def _ts(text: str, arrival: datetime, start: datetime, offset: timedelta) -> datetime:
    if text[0] == "-":
        return arrival - parse_duration(text[1:])
    if text[0] == "+":
        return arrival + parse_duration(text[1:])
    return instant(text, start) + offset


def _event(world: World, given: Given, at: datetime) -> None:
    event: dict[str, Any] = {"type": given.event, "owner": given.owner, "payload": given.payload}
    if given.id is not None:
        event["id"] = given.id
    if given.severity is not None:
        event["severity"] = given.severity
    if given.ts is not None:
        event["ts"] = _ts(given.ts, at, world.start, timedelta(0))
    if given.correlation_id is not None:
        event["correlation_id"] = _correlation_id(given.correlation_id)
    if given.reply_to is not None:
        world.at(at, "reply", action=given.reply_to, **event)
    else:
        world.at(at, "emit", **event)


def _correlation_id(text: str) -> UUID:
    """A UUID, or the id of the event whose idempotency key the text is."""
    try:
        return UUID(text)
    except ValueError:
        return ingested_id(text)


def _check_in(world: World, given: Given, at: datetime) -> None:
    assert given.check_in is not None
    status = given.status
    if given.exit_code is not None:
        status = "fail" if given.exit_code else "success"
    check_in = CheckIn(status, given.run_id, given.exit_code)
    owner = given.owner or given.check_in
    world.at(at, "check_in", heartbeat=given.check_in, owner=owner, check_in=check_in, log=given.log)


def _acknowledge(world: World, given: Given, at: datetime) -> None:
    world.at(at, "acknowledge", rule=given.acknowledge, owner=given.owner, who=given.by)


def _snooze(world: World, given: Given, at: datetime) -> None:
    world.at(at, "snooze", rule=given.snooze, lasts=given.for_, owner=given.owner, who=given.by)


def _resolve(world: World, given: Given, at: datetime) -> None:
    world.at(at, "resolve", rule=given.resolve, owner=given.owner, who=given.by)


def _unsnooze(world: World, given: Given, at: datetime) -> None:
    world.at(at, "unsnooze", rule=given.unsnooze, owner=given.owner, who=given.by)


def _silence(world: World, given: Given, at: datetime) -> None:
    silence = given.silence
    assert silence is not None
    arguments = {"where": silence.where, "lasts": silence.for_, "reason": silence.reason, "who": given.by}
    world.at(at, "silence", **arguments)


def _expire(world: World, given: Given, at: datetime) -> None:
    world.at(at, "expire", where=given.expire, who=given.by)


def _fail(world: World, given: Given, at: datetime) -> None:
    error = {} if given.error is None else {"error": given.error}
    world.at(at, "fail", action=given.fail, step=given.step, times=given.times, **error)


def _report(world: World, given: Given, at: datetime) -> None:
    assert given.report is not None
    state = "completed" if given.error is None else "failed"
    report = {"state": state, "result": given.result, "error": given.error}
    world.await_reports(given.report)
    world.at(at, "report", action=given.report, step=given.step, report=report)


def _never_reported(world: World, given: Given, at: datetime) -> None:
    world.at(at, "await_reports", action=given.never_reported)


def _probe(world: World, given: Given, at: datetime) -> None:
    result = probe_result(given.well, given.latency_ms)
    world.at(at, "probe", action=given.probe, step=given.step, result=result)


def _outage(world: World, given: Given, at: datetime) -> None:
    """Nothing: `outages` are known before the test starts."""


def _apply(world: World, given: Given, at: datetime) -> None:
    world.at(at, "apply", files=given.apply, who=given.by)


_SCHEDULE: dict[str, Callable[[World, Given, datetime], None]] = {
    "series": _series,
    "event": _event,
    "check_in": _check_in,
    "acknowledge": _acknowledge,
    "snooze": _snooze,
    "unsnooze": _unsnooze,
    "resolve": _resolve,
    "silence": _silence,
    "expire": _expire,
    "fail": _fail,
    "report": _report,
    "never_reported": _never_reported,
    "probe": _probe,
    "outage": _outage,
    "apply": _apply,
}
"""By the key of `given` that names the kind of the input."""
