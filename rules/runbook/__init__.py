"""Runbooks: what an action does next, as a pure function of what has happened.

Guarantees: `compile_runbook` numbers the steps of a document; `advance` takes the steps under way and the outcome of
one of them, and gives the steps under way after it, with everything that must be written as data. Every runbook ends,
whatever the outcomes and their order: steps only lead forward, and attempts are counted. A `parallel` joins exactly
once. The state is plain JSON, small enough to live in the action's row.

Why pure: the performer commits effects, tests and simulations collect them. No clock, no random number, no I/O: the
jitter of a back-off is a hash of the attempt.
"""

from rules.runbook.advance import Advance, advance, revive
from rules.runbook.backoff import delay_before
from rules.runbook.effects import (
    Answered,
    Armed,
    Awaited,
    Effect,
    Emitted,
    Finished,
    Recorded,
)
from rules.runbook.outcomes import Completed, Failed, Outcome, Paused, TimedOut
from rules.runbook.program import Node, Program, compile_runbook

__all__ = [
    "Advance",
    "Answered",
    "Armed",
    "Awaited",
    "Completed",
    "Effect",
    "Emitted",
    "Failed",
    "Finished",
    "Node",
    "Outcome",
    "Paused",
    "Program",
    "Recorded",
    "TimedOut",
    "advance",
    "compile_runbook",
    "delay_before",
    "revive",
]
