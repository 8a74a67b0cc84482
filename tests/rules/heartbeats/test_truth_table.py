"""Heartbeats in the pure engine, by the truth table."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import pytest

from rules.documents.compiled_rules import heartbeat_rule
from rules.engine import (
    BLANK,
    Arrival,
    Changed,
    Effects,
    Open,
    Resolve,
    RuleState,
    begin_heartbeat,
    pass_gap,
    pass_time,
    step,
)
from rules.lanes.arrival_gap import ArrivalGap
from rules.replay.rule_tests.world import World
from schemas.wire.check_in import check_in_key
from tests.rules.heartbeats.cases import NAME, CheckInAt, GapAt, HeartbeatCase, cases
from tocsin.core.instant import MICROSECOND


def transitions(effects: Effects) -> Iterable[tuple[datetime, str, str]]:
    for effect in effects:
        if isinstance(effect, Open):
            yield effect.at, "opened", effect.alarm.cause
        elif isinstance(effect, Changed):
            yield effect.at, "changed", effect.alarm.cause
        elif isinstance(effect, Resolve):
            yield effect.at, "resolved", ""


def run(case: HeartbeatCase, often: timedelta | None = None) -> list[tuple[datetime, str, str]]:
    """All transitions; with `often`, time passes in steps and the state is stored after each."""
    rule, found = heartbeat_rule(case.document), []
    state, effects = begin_heartbeat(rule, NAME, BLANK, case.begins)
    now = case.begins
    for number, given in enumerate([*case.inputs, None]):
        until = case.until if given is None else given.at
        while often is not None and (now := now + often) < until:
            state, more = pass_time(rule, NAME, state, now - MICROSECOND)
            state = RuleState.from_json(state.to_json())
            effects += more
        if given is None:
            state, more = pass_time(rule, NAME, state, until)
        elif isinstance(given, CheckInAt):
            now, check_in = given.at, given.check_in
            arrival = Arrival(now, number, NAME, check_in_key(NAME), check_in.status, now, check_in.labels)
            state, more = step(rule, state, arrival)
        else:
            now = given.ended_at
            state, more = pass_gap(rule, NAME, state, given.at, given.ended_at)
        state = RuleState.from_json(state.to_json())
        effects += more
    found = list(transitions(effects))
    return [transition for transition in found if transition[0] <= case.until]


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.title)
def test_the_transitions_are_those_of_the_table(case: HeartbeatCase) -> None:
    assert run(case) == case.transitions


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.title)
def test_it_makes_no_difference_how_often_time_passes(case: HeartbeatCase) -> None:
    assert run(case, often=timedelta(minutes=7)) == case.transitions


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.title)
def test_a_rule_test_has_the_transitions_of_the_table(case: HeartbeatCase) -> None:
    gaps = [ArrivalGap(given.at, given.ended_at) for given in case.inputs if isinstance(given, GapAt)]
    world = World([case.document], case.begins, gaps)
    for given in case.inputs:
        if isinstance(given, CheckInAt):
            world.at(given.at, "check_in", heartbeat=NAME, owner=NAME, check_in=given.check_in)
    world.run_until(case.until)
    found = [
        (entry.at, entry.state, "" if entry.state == "resolved" else entry.details["heartbeat"]["cause"])
        for entry in world.log
        if entry.kind == "alarm"
    ]
    assert found == case.transitions
