"""The kinds of documents in a rule file, by their top-level key."""

from pydantic import BaseModel

from schemas.documents.action import ActionDocument
from schemas.documents.action_rule import ActionRuleDocument
from schemas.documents.calc_rule import CalcRuleDocument
from schemas.documents.calendar import CalendarDocument
from schemas.documents.channel import ChannelDocument
from schemas.documents.datapoint_type import DatapointTypeDocument
from schemas.documents.event_rule import EventRuleDocument
from schemas.documents.heartbeat import HeartbeatDocument
from schemas.documents.ingest_mapping import IngestMappingDocument
from schemas.documents.inhibit import InhibitDocument
from schemas.documents.maintenance import MaintenanceDocument
from schemas.documents.schedule import ScheduleDocument
from schemas.documents.system import SystemDocument

DOCUMENT_KINDS: dict[str, type[BaseModel]] = {
    "schedule": ScheduleDocument,
    "event_rule": EventRuleDocument,
    "action_rule": ActionRuleDocument,
    "action": ActionDocument,
    "channel": ChannelDocument,
    "datapoint_type": DatapointTypeDocument,
    "system": SystemDocument,
    "calc_rule": CalcRuleDocument,
    "maintenance": MaintenanceDocument,
    "inhibit": InhibitDocument,
    "calendar": CalendarDocument,
    "heartbeat": HeartbeatDocument,
    "ingest_mapping": IngestMappingDocument,
}

__all__ = [
    "DOCUMENT_KINDS",
    "ActionDocument",
    "ActionRuleDocument",
    "CalcRuleDocument",
    "CalendarDocument",
    "ChannelDocument",
    "DatapointTypeDocument",
    "EventRuleDocument",
    "HeartbeatDocument",
    "IngestMappingDocument",
    "InhibitDocument",
    "MaintenanceDocument",
    "ScheduleDocument",
    "SystemDocument",
]
