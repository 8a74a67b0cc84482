"""Event types that only Tocsin writes.

Guarantee: no schedule, action or producer emits an event of a reserved type, so an event of such a
type is what it claims to be. The loader, the client and the command line reject the type before
anything is sent; a worker rejects an external event of such a type as a dead letter; the database
rejects a schedule with it (`tocsin.is_reserved_type`, which lists the same types).

One exception: `schedule-fired` is the type that a schedule has by default.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from schemas.values.names import Name
from schemas.values.pydantic_check import pydantic_check
from tocsin.core.errors import InvalidInput

SCHEDULE_FIRED = "schedule-fired"
RESERVED_PREFIXES = (
    *("alarm-", "schedule-", "rules-", "notification-", "silence-", "maintenance-", "inhibit-"),
    *("action-", "pipeline-", "system-", "cdc-", "quota-", "heartbeat-"),
)
RESERVED_TYPES = frozenset(
    {"series-forgotten", "log-pruned", "log-gap-recorded", "stream-rebuilt", "owner-forgotten"}
)


def is_reserved(type: str) -> bool:
    return type.startswith(RESERVED_PREFIXES) or type in RESERVED_TYPES


def check_free(type: str) -> str:
    """`InvalidInput` if only Tocsin may write events of this type."""
    if not is_reserved(type):
        return type
    prefix = next((prefix for prefix in RESERVED_PREFIXES if type.startswith(prefix)), None)
    remedy = f"choose a type that does not begin with '{prefix}'" if prefix else "choose another type"
    raise InvalidInput(f"the event type '{type}' is reserved for events of tocsin itself", remedy=remedy)


def check_schedule_type(type: str) -> str:
    return type if type == SCHEDULE_FIRED else check_free(type)


FreeEventType = Annotated[Name, AfterValidator(pydantic_check(check_free))]
"""The type of an event that an action or a producer emits."""
ScheduleEventType = Annotated[Name, AfterValidator(pydantic_check(check_schedule_type))]
