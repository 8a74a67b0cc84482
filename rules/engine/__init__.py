"""The pure engine of event_rules. Live workers, rule tests and backtests are shells around it.

Guarantee: the same inputs in the same order give the same alarms, ids and texts. It makes no
difference which shell runs the engine, how often it calls `advance`, and whether it stores the
states in between.

A shell keeps one `RuleState` per rule, owner and `Rule.instance_of`, calls `step` for each input and each rule that
`CompiledRules` finds for it, and carries out the effects in their order.
"""

from rules.engine.compiled import CompiledRules
from rules.engine.effects import (
    Alarm,
    ArmSustain,
    CancelSustain,
    Changed,
    Describe,
    DropPending,
    Effect,
    Effects,
    MessageFailed,
    Open,
    Pend,
    Resolve,
    Suppressed,
)
from rules.engine.heartbeat_rule import HeartbeatRule
from rules.engine.heartbeat_step import begin_heartbeat, pass_gap
from rules.engine.inputs import Arrival, EventSeen, Input, OpenAlarm, OpenAlarms, Value, WentStale
from rules.engine.over_alarms import open_alarms
from rules.engine.rule import Rule, RuleInvalid
from rules.engine.state import BLANK, RuleState
from rules.engine.step import pass_time, step
from rules.engine.transitions import adopt, advance, end, resolve_by_operator
from rules.engine.types import TypeIndex

__all__ = [
    "BLANK",
    "Alarm",
    "ArmSustain",
    "Arrival",
    "CancelSustain",
    "Changed",
    "CompiledRules",
    "Describe",
    "DropPending",
    "Effect",
    "Effects",
    "EventSeen",
    "HeartbeatRule",
    "Input",
    "MessageFailed",
    "Open",
    "OpenAlarm",
    "OpenAlarms",
    "Pend",
    "Resolve",
    "Rule",
    "RuleInvalid",
    "RuleState",
    "Suppressed",
    "TypeIndex",
    "Value",
    "WentStale",
    "adopt",
    "advance",
    "begin_heartbeat",
    "end",
    "open_alarms",
    "pass_gap",
    "pass_time",
    "resolve_by_operator",
    "step",
]
