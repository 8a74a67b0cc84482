"""Explanations: a fire of a schedule, a fresh or stale series, what a rule sees, and active times.

The explanation of an alarm is beside the alarm (`alarms.py`).
"""

from __future__ import annotations

import json
import uuid
from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import AwareDatetime, BaseModel, Field

from clock.explain.records import explain_schedule
from rules.alarms.explain_active_times import explain_active_times
from rules.alarms.explain_references import explain_references, rule_over_alarms
from rules.alarms.explain_series import series_sentence
from rules.alarms.series_queries import list_series as read_series
from schemas.values.duration import format_duration
from timers.working_set import database_now
from tocsin.api.access.permission import Access, may
from tocsin.api.v1.schedules import find_row
from tocsin.api.v1.series import SeriesView
from tocsin.core.errors import NotFound
from tocsin.core.instant import instant_text
from tocsin.policy import Operation

router = APIRouter(tags=["explain"])
Row = dict[str, Any]


class ScheduleExplanation(BaseModel):
    outcome: str = Field(description="fired, missed, pending, not-an-occurrence and so on.")
    sentence: str
    facts: Row = Field(description="What the sentence follows from, with seqs.")
    owner: str
    schedule: str


class SeriesExplanation(BaseModel):
    sentence: str
    series: SeriesView


class RuleExplanation(BaseModel):
    rule: str
    owner: str
    condition: str
    lines: list[str]
    refers_to: list[Row] = Field(description="Each rule of the condition, its state and its alarms.")


class ActiveTimesView(BaseModel):
    sentence: str
    facts: Row = Field(description="Kind, name, whether it is active, the reason if not, and until when.")


@router.get("/rules:active", summary="Whether rules and channels of a name are within their active times")
async def explain_active(
    access: Annotated[Access, may(Operation.VIEW_RULES)],
    name: Annotated[str, Query(min_length=1, max_length=128)],
    at: Annotated[AwareDatetime | None, Query(description="Now by default.")] = None,
) -> list[ActiveTimesView]:
    async with access.session() as connection:
        found = await explain_active_times(connection, name, at or await database_now(connection))
    return [ActiveTimesView(sentence=each.sentence, facts=each.facts) for each in found]


@router.get("/schedules/{id}/explanation", summary="Why a schedule fired or not at an instant")
async def explain_one_schedule(
    access: Annotated[Access, may(Operation.VIEW_SCHEDULES)],
    id: uuid.UUID,
    at: Annotated[
        AwareDatetime | None, Query(description="Instant of an occurrence; the latest one by default.")
    ] = None,
) -> ScheduleExplanation:
    async with access.session() as connection:
        row = await find_row(connection, access, id)
        now = await database_now(connection)
        found = await explain_schedule(connection, row["owner"], row["name"], now, at)
    facts = _plain(found.facts)
    names = {"owner": row["owner"], "schedule": row["name"]}
    return ScheduleExplanation(outcome=found.outcome, sentence=found.sentence, facts=facts, **names)


@router.get("/series:explain", summary="Why a series is fresh or stale")
async def explain_one_series(
    access: Annotated[Access, may(Operation.VIEW_SERIES)],
    owner: Annotated[str, Query(max_length=128)],
    key: Annotated[str, Query(min_length=1, max_length=512)],
) -> SeriesExplanation:
    async with access.session() as connection:
        rows = await read_series(connection, owner=owner, key=key, owners=access.owners, limit=2)
        now = await database_now(connection)
    row = next((row for row in rows if row["key"] == key), None)
    if row is None:
        raise NotFound(f"there is no series {key!r} of owner {owner!r}", remedy="`GET /v1/series` lists them")
    return SeriesExplanation(sentence=series_sentence(row, now), series=SeriesView(**row))


@router.get("/rules/event_rule/{name}/explanation", summary="What a rule over alarms sees of an owner")
async def explain_one_rule(
    access: Annotated[Access, may(Operation.VIEW_ALARMS)],
    name: Annotated[str, Path(max_length=128)],
    owner: Annotated[str, Query(max_length=128)] = "",
) -> RuleExplanation:
    access.require(owner)
    async with access.session() as connection:
        rule = await rule_over_alarms(connection, name)
        if rule is None:
            raise NotFound(
                f"there is no event_rule over alarms {name!r}", remedy="`GET /v1/rules` lists the documents"
            )
        found = await explain_references(connection, rule, owner)
    return RuleExplanation(
        rule=name, owner=owner, condition=found.condition, lines=list(found.lines), refers_to=found.facts
    )


def _plain(facts: dict[str, object]) -> Row:
    """The facts as the command line writes them as JSON."""

    def text(value: object) -> str:
        if isinstance(value, datetime):
            return instant_text(value)
        return format_duration(value) if isinstance(value, timedelta) else str(value)

    return dict(json.loads(json.dumps(facts, default=text)))
