"""Roles, operations and the decision. An operation concerns an owner, such as acknowledging an alarm, or
the whole instance, such as pruning. One on the instance needs a grant for all owners (`*`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

EVERY_OWNER = "*"


class AccessRole(StrEnum):
    """What a principal is allowed to be, for the owners of one pattern."""

    VIEWER = "viewer"
    RESPONDER = "responder"
    AUTHOR = "author"
    APPROVER = "approver"
    SENDER = "sender"
    """Sends datapoints, check-ins and events, and reads nothing: for URLs and agents."""
    OPERATOR = "operator"
    ADMIN = "admin"


class Scope(StrEnum):
    OWNER = "owner"
    INSTANCE = "instance"


class Operation(StrEnum):
    """Everything that a principal can do to a running instance."""

    VIEW_EVENTS = "view-events"
    VIEW_ALARMS = "view-alarms"
    VIEW_SCHEDULES = "view-schedules"
    VIEW_SERIES = "view-series"
    VIEW_ACTIONS = "view-actions"
    VIEW_RULES = "view-rules"
    VIEW_HEALTH = "view-health"
    VIEW_AUDIT = "view-audit"
    VIEW_DEAD_LETTERS = "view-dead-letters"
    ACKNOWLEDGE_ALARM = "acknowledge-alarm"
    SNOOZE_ALARM = "snooze-alarm"
    RESOLVE_ALARM = "resolve-alarm"
    SILENCE_ALARMS = "silence-alarms"
    CHECK_RULES = "check-rules"
    PLAN_RULES = "plan-rules"
    TEST_RULES = "test-rules"
    APPLY_RULES = "apply-rules"
    TEST_CHANNEL = "test-channel"
    PUT_SCHEDULE = "put-schedule"
    PAUSE_SCHEDULE = "pause-schedule"
    RUN_SCHEDULE = "run-schedule"
    CANCEL_SCHEDULE = "cancel-schedule"
    RETRY_RUN = "retry-run"
    CANCEL_RUN = "cancel-run"
    RETRY_TIMER = "retry-timer"
    RETRY_DEAD_LETTER = "retry-dead-letter"
    SEND_DATA = "send-data"
    EMIT_EVENT = "emit-event"
    PRUNE = "prune"
    REPAIR_LOG = "repair-log"
    FORGET_OWNER = "forget-owner"
    MANAGE_GRANTS = "manage-grants"
    MANAGE_TOKENS = "manage-tokens"


_VIEW = (AccessRole.VIEWER, AccessRole.RESPONDER, AccessRole.AUTHOR, AccessRole.APPROVER, AccessRole.OPERATOR)
_RESPOND = (AccessRole.RESPONDER, AccessRole.OPERATOR)
_PROPOSE = (AccessRole.AUTHOR, AccessRole.APPROVER)
_OPERATE = (AccessRole.OPERATOR,)
_SEND = (AccessRole.SENDER, AccessRole.OPERATOR)
_ADMIN_ONLY: tuple[AccessRole, ...] = ()

# Who may do it, besides an admin, and whether it concerns one owner or the instance.
RULES: MappingProxyType[Operation, tuple[tuple[AccessRole, ...], Scope]] = MappingProxyType(
    {
        Operation.VIEW_EVENTS: (_VIEW, Scope.OWNER),
        Operation.VIEW_ALARMS: (_VIEW, Scope.OWNER),
        Operation.VIEW_SCHEDULES: (_VIEW, Scope.OWNER),
        Operation.VIEW_SERIES: (_VIEW, Scope.OWNER),
        Operation.VIEW_ACTIONS: (_VIEW, Scope.OWNER),
        Operation.VIEW_RULES: (_VIEW, Scope.INSTANCE),
        Operation.VIEW_HEALTH: (_VIEW, Scope.INSTANCE),
        Operation.VIEW_AUDIT: ((*_PROPOSE, AccessRole.OPERATOR), Scope.INSTANCE),
        Operation.VIEW_DEAD_LETTERS: (_OPERATE, Scope.INSTANCE),
        Operation.ACKNOWLEDGE_ALARM: (_RESPOND, Scope.OWNER),
        Operation.SNOOZE_ALARM: (_RESPOND, Scope.OWNER),
        Operation.RESOLVE_ALARM: (_RESPOND, Scope.OWNER),
        # A matcher can mute the alarms of any owner.
        Operation.SILENCE_ALARMS: (_RESPOND, Scope.INSTANCE),
        Operation.CHECK_RULES: (_PROPOSE, Scope.INSTANCE),
        Operation.PLAN_RULES: (_PROPOSE, Scope.INSTANCE),
        Operation.TEST_RULES: (_PROPOSE, Scope.INSTANCE),
        Operation.APPLY_RULES: ((AccessRole.APPROVER,), Scope.INSTANCE),
        Operation.TEST_CHANNEL: ((AccessRole.APPROVER, AccessRole.OPERATOR), Scope.INSTANCE),
        Operation.PUT_SCHEDULE: ((AccessRole.AUTHOR, AccessRole.APPROVER, AccessRole.OPERATOR), Scope.OWNER),
        Operation.PAUSE_SCHEDULE: (_OPERATE, Scope.OWNER),
        Operation.RUN_SCHEDULE: (_OPERATE, Scope.OWNER),
        Operation.CANCEL_SCHEDULE: (
            (AccessRole.AUTHOR, AccessRole.APPROVER, AccessRole.OPERATOR),
            Scope.OWNER,
        ),
        Operation.RETRY_RUN: (_OPERATE, Scope.OWNER),
        Operation.CANCEL_RUN: (_OPERATE, Scope.OWNER),
        Operation.RETRY_TIMER: (_OPERATE, Scope.INSTANCE),
        Operation.RETRY_DEAD_LETTER: (_OPERATE, Scope.INSTANCE),
        Operation.SEND_DATA: (_SEND, Scope.OWNER),
        Operation.EMIT_EVENT: (_SEND, Scope.OWNER),
        Operation.PRUNE: (_OPERATE, Scope.INSTANCE),
        Operation.REPAIR_LOG: (_OPERATE, Scope.INSTANCE),
        Operation.FORGET_OWNER: (_ADMIN_ONLY, Scope.INSTANCE),
        Operation.MANAGE_GRANTS: (_ADMIN_ONLY, Scope.INSTANCE),
        Operation.MANAGE_TOKENS: (_ADMIN_ONLY, Scope.INSTANCE),
    }
)


@dataclass(frozen=True)
class Grant:
    """A role for the owners of a pattern: an owner, or the beginning of owners followed by `*`."""

    role: AccessRole
    pattern: str


@dataclass(frozen=True)
class Principal:
    """A person, a service or a component, as its credentials prove it."""

    name: str
    grants: tuple[Grant, ...] = ()


@dataclass(frozen=True)
class AccessDecision:
    allowed: bool
    reason: str
    """For the audit and for the error: what was missing, or which grant allowed it."""


def matches(owner: str, pattern: str) -> bool:
    """Whether a pattern names an owner."""
    if pattern.endswith("*"):
        return owner.startswith(pattern[:-1])
    return owner == pattern


def decide(principal: Principal, operation: Operation, owner: str | None = None) -> AccessDecision:
    """Whether a principal may do an operation; `owner` is None for one that concerns the instance."""
    rule = RULES.get(operation)
    if rule is None:
        return AccessDecision(False, f"{operation!r} is not an operation")
    roles, scope = rule
    if scope is Scope.OWNER and owner is None:
        return AccessDecision(False, f"{operation} concerns an owner, and none is named")
    for grant in principal.grants:
        if grant.role is not AccessRole.ADMIN and grant.role not in roles:
            continue
        if scope is Scope.INSTANCE and grant.pattern == EVERY_OWNER:
            return AccessDecision(True, f"{grant.role} of the instance")
        if scope is Scope.OWNER and owner is not None and matches(owner, grant.pattern):
            return AccessDecision(True, f"{grant.role} of {grant.pattern!r}")
    allowed = ", ".join((*roles, AccessRole.ADMIN))
    subject = f"owner {owner!r}" if scope is Scope.OWNER else "the instance"
    return AccessDecision(
        False, f"{principal.name!r} may not {operation} for {subject}: it takes one of {allowed}"
    )
