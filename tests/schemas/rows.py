"""Rows of the record log, made by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from schemas.wire.event import EventRow
from schemas.wire.step import StepRow

AT = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
ID = UUID("11111111-1111-4111-8111-111111111111")
OTHER = UUID("22222222-2222-4222-8222-222222222222")


def event_row(**changed: Any) -> EventRow:
    row = EventRow(
        seq=7,
        id=ID,
        ts=AT,
        recorded_at=AT,
        origin="scheduled",
        type="schedule-fired",
        schedule="beat",
        rule="",
        action="",
        owner="",
        fire_at=None,
        alarm_id=None,
        severity=None,
        source_event_id=None,
        correlation_id=ID,
        payload="{}",
        epoch=1,
    )
    return row._replace(**changed)


def step_row(**changed: Any) -> StepRow:
    row = StepRow(
        seq=8,
        id=ID,
        action_id=OTHER,
        name="tell",
        owner="",
        step=0,
        attempt=1,
        state="due",
        recorded_at=AT,
        correlation_id=ID,
        source_event_id=None,
        result="{}",
    )
    return row._replace(**changed)
