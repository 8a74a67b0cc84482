"""The kinds of documents that a rules file may hold, by their top-level key."""

from pydantic import BaseModel

from schemas.action_document import ActionDocument
from schemas.action_rule_document import ActionRuleDocument
from schemas.channel_document import ChannelDocument
from schemas.datapoint_type_document import DatapointTypeDocument
from schemas.event_rule_document import EventRuleDocument
from schemas.schedule_document import ScheduleDocument
from schemas.system_document import SystemDocument

KINDS: dict[str, type[BaseModel]] = {
    "schedule": ScheduleDocument,
    "event_rule": EventRuleDocument,
    "action_rule": ActionRuleDocument,
    "action": ActionDocument,
    "channel": ChannelDocument,
    "datapoint_type": DatapointTypeDocument,
    "system": SystemDocument,
}

__all__ = [
    "KINDS",
    "ActionDocument",
    "ActionRuleDocument",
    "ChannelDocument",
    "DatapointTypeDocument",
    "EventRuleDocument",
    "ScheduleDocument",
    "SystemDocument",
]
