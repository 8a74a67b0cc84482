"""The kinds of documents that a rules file may hold, by their top-level key."""

from pydantic import BaseModel

from schemas.action_document import ActionDocument, LogAction, PublishAction
from schemas.action_rule_document import ActionRuleDocument
from schemas.schedule_document import ScheduleDocument

KINDS: dict[str, type[BaseModel]] = {
    "schedule": ScheduleDocument,
    "action_rule": ActionRuleDocument,
    "action": ActionDocument,
}

__all__ = [
    "KINDS",
    "ActionDocument",
    "ActionRuleDocument",
    "LogAction",
    "PublishAction",
    "ScheduleDocument",
]
