"""The engine of event_rules: pure, so that live workers, rule tests and backtests are three shells around it.

Guarantee: the same inputs in the same order give the same alarms, ids and texts, whoever runs the engine,
however often it is asked to `advance`, and whether its states were written down in between or not.

A shell keeps one `RuleState` per (rule, owner), calls `step` for each input and each rule that `CompiledRules`
names, and carries out the effects in their order.
"""

from rules.engine.compiled import CompiledRules
from rules.engine.effects import (
    Alarm,
    ArmSustain,
    CancelSustain,
    DropPending,
    Effect,
    Effects,
    MessageFailed,
    Open,
    Pend,
    Resolve,
    alarm_id,
)
from rules.engine.inputs import Arrival, EventSeen, Input, Value, WentStale
from rules.engine.rule import Rule, RuleInvalid, compile_rule
from rules.engine.state import BLANK, RuleState
from rules.engine.step import step
from rules.engine.transitions import adopt, advance, end
from rules.engine.types import TypeIndex

__all__ = [
    "BLANK",
    "Alarm",
    "ArmSustain",
    "Arrival",
    "CancelSustain",
    "CompiledRules",
    "DropPending",
    "Effect",
    "Effects",
    "EventSeen",
    "Input",
    "MessageFailed",
    "Open",
    "Pend",
    "Resolve",
    "Rule",
    "RuleInvalid",
    "RuleState",
    "TypeIndex",
    "Value",
    "WentStale",
    "adopt",
    "advance",
    "alarm_id",
    "compile_rule",
    "end",
    "step",
]
