"""`/v1/series`: the newest value of each series, and sending datapoints."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from rules.alarms.series_queries import list_series as read_series
from tocsin.api.access.permission import Access, may
from tocsin.api.pages import Keyset, Page, Paged
from tocsin.api.v1.inputs import OptionalText
from tocsin.client.producer import Producer
from tocsin.policy import Operation

router = APIRouter(tags=["series"])
_BY_KEY = Keyset({"owner": str, "key": str})
_MOST_DATAPOINTS = 1000
_SEND_WITHIN_S = 5.0


class SeriesView(BaseModel):
    owner: str
    key: str
    datapoint_type: str | None
    value: Any
    ts: datetime
    labels: dict[str, str]
    arrived_at: datetime
    first_arrived_at: datetime
    freshness: str = Field(description="fresh or stale.")
    stale_since: datetime | None
    deadline: datetime | None = Field(description="When it becomes stale, or became so.")
    cause: str | None = Field(description="`no-arrival` if stale, `pipeline-behind` if the check is held.")


class DatapointRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")
    owner: str = Field(max_length=128)
    key: str = Field(min_length=1, max_length=512)
    value: float | int | bool | str
    ts: AwareDatetime | None = Field(
        default=None, description="Instant of the measurement; its arrival by default."
    )
    labels: dict[str, str] | None = None


class DatapointsRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")
    datapoints: list[DatapointRequest] = Field(min_length=1, max_length=_MOST_DATAPOINTS)


class DatapointsSent(BaseModel):
    sent: int


@router.get("/series", summary="List series with their newest value")
async def list_series(
    access: Annotated[Access, may(Operation.VIEW_SERIES)],
    page: Paged,
    owner: OptionalText = None,
    key: Annotated[
        str | None, Query(max_length=512, description="A key, or a pattern such as dsp.* or dsp.**.")
    ] = None,
    type: OptionalText = None,
    stale: Annotated[bool, Query(description="Only stale series.")] = False,
) -> Page[SeriesView]:
    position = _BY_KEY.after(page)
    async with access.session() as connection:
        rows = await read_series(
            connection,
            owner=owner,
            key=key,
            type=type,
            stale=stale,
            owners=access.owners,
            after=(position["after_owner"], position["after_key"]),
            limit=position["limit"],
        )
    return _BY_KEY.page(page, rows, lambda row: SeriesView(**row))


@router.post(
    "/datapoints", status_code=202, summary="Send datapoints; answered when JetStream has stored them"
)
async def send_datapoints(
    access: Annotated[Access, may(Operation.SEND_DATA)], body: DatapointsRequest
) -> DatapointsSent:
    for owner in {datapoint.owner for datapoint in body.datapoints}:
        access.require(owner)
    bus = await access.context.bus()
    async with Producer(access.context.settings, timeout_s=_SEND_WITHIN_S, bus=bus) as producer:
        for datapoint in body.datapoints:
            await producer.send(
                datapoint.owner, datapoint.key, datapoint.value, ts=datapoint.ts, labels=datapoint.labels
            )
    return DatapointsSent(sent=len(body.datapoints))
