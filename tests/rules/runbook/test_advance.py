"""Every runbook ends, with any outcomes in any order; a parallel joins once; the state is plain JSON."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.runbook import (
    Advance,
    Completed,
    Failed,
    Outcome,
    Paused,
    Program,
    RunEnd,
    StepRecord,
    TimedOut,
    WaitTimer,
    advance,
    compile_runbook,
    delay_before,
    retry_dead_steps,
)
from rules.runbook.program import MAX_NESTING, MAX_NODES
from schemas.documents.action import ActionDocument
from schemas.documents.runbook import RetryPolicy
from tocsin.core.errors import InvalidInput

T0 = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
LOG = {"log": {"message": "x"}}


def retry(**keys: Any) -> RetryPolicy:
    return RetryPolicy.model_validate(keys)


def program_of(*steps: Any) -> Program:
    return compile_runbook(ActionDocument.model_validate({"name": "a", "steps": list(steps)}))


leaves = st.fixed_dictionaries(
    {
        "log": st.just({"message": "x"}),
        "on_failure": st.sampled_from(["stop", "continue"]),
        "retry": st.fixed_dictionaries({"attempts": st.integers(1, 3)}),
    }
) | st.just({"wait": {"for": "1m"}})


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists = st.lists(inner, min_size=1, max_size=3)
    branch = st.fixed_dictionaries({"then": lists, "else": st.lists(inner, max_size=2)}).map(
        lambda ways: {"branch": {"when": "true", **ways}}
    )
    parallel = st.fixed_dictionaries(
        {
            "parallel": st.lists(lists, min_size=1, max_size=3),
            "on_failure": st.sampled_from(["stop", "continue"]),
        }
    )
    return branch | parallel


steps_of = st.lists(st.recursive(leaves, nested, max_leaves=12), min_size=1, max_size=4)


def outcome_of(data: st.DataObject, kind: str, lapsed: bool) -> Outcome:
    if kind == "parallel":
        return Completed()
    if kind == "branch":
        return Completed(branch=data.draw(st.integers(0, 1)))
    choices: list[Outcome] = [
        Completed({"k": 1}),
        Failed("e"),
        Failed("e", permanent=True),
        TimedOut("t"),
    ]
    if not lapsed:
        choices.append(Paused(T0 + timedelta(minutes=1)))
    return data.draw(st.sampled_from(choices))


class Machine:
    """Takes effects as the database would, and holds what must always be true."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.ended: Counter[tuple[int, str]] = Counter()
        self.finished: list[RunEnd] = []
        self.timers: dict[int, dict[str, Any]] = {}
        first = Advance({})
        first.due(0)
        self.take(first)

    def take(self, after: Advance) -> None:
        assert json.loads(json.dumps(after.active)) == after.active
        self.active = after.active
        for effect in after.effects:
            if isinstance(effect, WaitTimer):
                assert effect.step not in self.timers
                self.timers[effect.step] = dict(effect.entry)
            elif isinstance(effect, RunEnd):
                self.finished.append(effect)
            elif isinstance(effect, StepRecord) and effect.state in ("completed", "failed", "timed_out"):
                self.ended[effect.step, effect.state] += 1
        waiting = {int(step) for step, entry in self.active.items() if entry["state"] == "waiting"}
        assert set(self.timers) == {
            step for step in waiting if self.program.nodes[step].kind != "parallel"
        }, "exactly the waiting steps have a timer"

    @property
    def open(self) -> list[int]:
        """Steps that can change now: those that are due, and those that wait for a timer."""
        return [
            int(step)
            for step, entry in self.active.items()
            if entry["state"] == "due" or int(step) in self.timers
        ]


def run(data: st.DataObject, machine: Machine) -> None:
    for _ in range(2_000):
        if not machine.open:
            break
        step = data.draw(st.sampled_from(sorted(machine.open)))
        entry = machine.active[str(step)]
        node = machine.program.nodes[step]
        if entry["state"] == "waiting":
            machine.active[str(step)] = {**entry, **machine.timers.pop(step), "state": "due"}
            continue
        outcome = outcome_of(data, node.kind, bool(entry.get("lapsed")))
        machine.take(advance(machine.program, machine.active, step, outcome, T0, "salt"))
    assert machine.open == []


@settings(max_examples=150)
@given(steps_of, st.data())
def test_every_runbook_ends_and_joins_once_in_any_order_of_outcomes(
    steps: list[Any], data: st.DataObject
) -> None:
    machine = Machine(program_of(*steps))
    run(data, machine)
    (finished,) = machine.finished
    assert all(count == 1 for count in machine.ended.values())
    dead = {step for step, entry in machine.active.items() if entry["state"] in ("failed", "timed_out")}
    assert set(machine.active) == dead
    assert (finished.state == "completed") == (not dead)
    assert bool(finished.error) == bool(dead)


@settings(max_examples=75)
@given(steps_of, st.data())
def test_a_dead_runbook_that_is_retried_ends_again(steps: list[Any], data: st.DataObject) -> None:
    machine = Machine(program_of(*steps))
    run(data, machine)
    if machine.finished[-1].state == "completed":
        return
    after = retry_dead_steps(machine.program, machine.active)
    assert after.effects
    assert all(isinstance(effect, StepRecord) and effect.state == "due" for effect in after.effects)
    machine.take(after)
    run(data, machine)
    assert len(machine.finished) == 2


def test_numbers_follow_the_text_of_the_document() -> None:
    program = program_of(
        LOG,
        {"branch": {"when": "true", "then": [LOG, LOG], "else": [LOG]}},
        {"parallel": [[LOG], [LOG, {"parallel": [[LOG]]}]]},
        LOG,
    )
    shape = [(node.kind, node.following, node.inside, node.last, node.heads) for node in program.nodes]
    assert shape == [
        ("log", 1, None, 0, ()),
        ("branch", 5, None, 4, (2, 4)),
        ("log", 3, None, 2, ()),
        ("log", 5, None, 3, ()),
        ("log", 5, None, 4, ()),
        ("parallel", 10, None, 9, (6, 7)),
        ("log", None, 5, 6, ()),
        ("log", 8, 5, 7, ()),
        ("parallel", None, 5, 9, (9,)),
        ("log", None, 8, 9, ()),
        ("log", None, None, 10, ()),
    ]


def test_an_empty_branch_continues_after_the_step() -> None:
    program = program_of({"branch": {"when": "true", "then": [], "else": [LOG]}}, LOG)
    assert program.nodes[0].heads == (2, 1)
    assert program_of({"branch": {"when": "true", "then": [LOG]}}).nodes[0].heads == (1, None)


def test_a_short_form_is_a_runbook_of_one_step() -> None:
    document = ActionDocument.model_validate({"name": "a", **LOG, "retry": {"attempts": 2}})
    (node,) = compile_runbook(document).nodes
    assert (node.kind, node.attempts, node.name) == ("log", 2, "0")


def test_a_runbook_that_is_too_large_is_rejected() -> None:
    step: Any = LOG
    for _ in range(MAX_NESTING):
        step = {"parallel": [[step]]}
    with pytest.raises(InvalidInput, match="nested more than 8 deep"):
        program_of(step)
    half = [LOG] * (MAX_NODES // 2)
    with pytest.raises(InvalidInput, match="202 steps, at most 200"):
        program_of({"parallel": [half, half]}, LOG)


def test_delays_double_up_to_the_max_interval() -> None:
    bounded = retry(max_interval="60s", jitter=0)
    delays = [delay_before(bounded, attempt, "a/0") for attempt in range(2, 8)]
    assert [delay.total_seconds() for delay in delays] == [10, 20, 40, 60, 60, 60]
    assert delay_before(retry(attempts=100), 100, "a/0") <= timedelta(hours=1)


@given(st.integers(2, 100), st.text(max_size=40))
def test_jitter_takes_away_up_to_its_share_and_is_the_same_every_time(attempt: int, salt: str) -> None:
    plain = delay_before(retry(jitter=0), attempt, salt)
    delay = delay_before(retry(jitter=0.5), attempt, salt)
    assert plain / 2 <= delay <= plain
    assert delay == delay_before(retry(jitter=0.5), attempt, salt)


def test_runs_that_failed_together_are_not_retried_together() -> None:
    delays = {delay_before(retry(), 2, f"action {number}/0") for number in range(100)}
    assert len(delays) == 100
