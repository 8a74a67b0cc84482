"""Runbooks: the next steps of a run, as a pure function of its active steps and an outcome.

Guarantees: `compile_runbook` numbers the steps of a document. `advance` takes the active steps and
the outcome of one of them, and returns the active steps after it and the effects to write, as data.
Every runbook ends, with any outcomes in any order: steps only lead forward, and attempts are
counted. The one step of a notification ends with its alarms (`notification_queue`). A `parallel` joins
exactly once. The state is plain JSON, small enough for the row of the run.

Why pure: the performer commits the effects, rule tests and backtests collect them. There is no
clock, no random number and no I/O: the jitter of a delay is a hash of the attempt.

Entry points: `rules.actions.commit` and the replay call `advance`, `rules.actions.retry` calls
`retry_dead_steps`.
"""

from rules.runbook.advance import Advance, advance, begin_finally, retry_dead_steps
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
from rules.runbook.outcomes import Completed, Failed, Held, Outcome, Paused, Rested, TimedOut
from rules.runbook.program import Node, Program, compile_runbook

__all__ = [
    "Advance",
    "AwaitedEvent",
    "Completed",
    "Effect",
    "EmittedEvent",
    "Failed",
    "FinallyBegin",
    "Held",
    "Node",
    "Outcome",
    "Paused",
    "Program",
    "Rested",
    "RunEnd",
    "StepAnswer",
    "StepRecord",
    "TimedOut",
    "WaitTimer",
    "advance",
    "begin_finally",
    "compile_runbook",
    "delay_before",
    "retry_dead_steps",
]
