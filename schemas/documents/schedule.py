"""The `schedule` document: when to fire, and what the fire carries.

Guarantee: a model that exists has exactly one recurrence key, names that are safe tokens, and a payload
that is plain JSON. Whether the recurrence is sound is decided by `timers.recurrence`, which the loader asks.

Times stay texts here, exactly as written: their meaning depends on `tz`, and what was written is what is
compared when the file is applied again.
"""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator, model_validator
from pydantic_core import PydanticCustomError

from schemas.values.duration import Duration
from schemas.values.json_shape import check_json_shape
from schemas.values.names import Name, Owner
from tocsin.core.errors import InvalidInput

RECURRENCE_KEYS = ("cron", "rrule", "every", "at")

WallTimes = Annotated[tuple[str, ...], Field(strict=False, max_length=1000)]


class ScheduleDocument(BaseModel):
    """A recurrence in a timezone, and the event that each fire becomes."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: Name = Field(description="Unique name of the schedule.", examples=["daily-digest"])
    cron: str | None = Field(
        None,
        description="Cron expression of five fields, or @hourly, @daily, @weekly, @monthly, @yearly.",
        examples=["0 8 * * MON-FRI", "*/15 * * * *", "@daily"],
    )
    rrule: str | None = Field(
        None,
        description="Recurrence rule of RFC 5545, without DTSTART (see `dtstart`).",
        examples=["FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17;BYMINUTE=0;BYSECOND=0"],
    )
    every: str | None = Field(
        None, description="Interval of elapsed time between fires.", examples=["10s", "5m", "1h30m"]
    )
    at: str | None = Field(
        None,
        description="One fire: an absolute instant, or a wall time in `tz`.",
        examples=["2027-01-01T00:00:00Z", "2027-01-01T09:00:00"],
    )
    tz: str = Field(
        "UTC",
        description="IANA timezone in which wall times are read.",
        examples=["America/New_York", "Europe/London", "UTC"],
    )
    dtstart: str | None = Field(
        None, description="First wall time of an `rrule`.", examples=["2026-01-05T08:00:00"]
    )
    exdates: WallTimes = Field(
        (), description="Wall times at which an `rrule` does not fire.", examples=[["2026-12-25T08:00:00"]]
    )
    rdates: WallTimes = Field(
        (), description="Wall times at which an `rrule` fires as well.", examples=[["2026-12-24T08:00:00"]]
    )
    dst_gap: Literal["forward", "skip"] = Field(
        "forward",
        description="A wall time that does not exist: fire at the end of the gap, or not at all.",
        examples=["forward"],
    )
    dst_fold: Literal["first", "second", "both"] = Field(
        "first", description="A wall time that comes twice: which of the two fires.", examples=["first"]
    )
    spread: Duration | None = Field(
        None,
        description="Adds a stable delay below this, derived from the name, against stampedes.",
        examples=["5m"],
    )
    starts_at: str | None = Field(
        None,
        description="Nothing fires before this instant, or wall time in `tz`.",
        examples=["2027-01-01T00:00:00Z"],
    )
    ends_at: str | None = Field(
        None,
        description="Nothing fires after this instant, or wall time in `tz`.",
        examples=["2027-12-31T23:59:59"],
    )
    catch_up: Literal["latest", "all", "none"] = Field(
        "latest",
        description="After an outage: fire the most recent missed time, each of them in order, or none.",
        examples=["latest"],
    )
    window: Duration | None = Field(
        None,
        description="Missed times older than this stay missed (default: no limit).",
        examples=["6h"],
    )
    grace: Duration | None = Field(
        None,
        description="A fire up to this late is on time "
        "(default: the smaller of one minute and half the distance to the next time).",
        examples=["30s"],
    )
    max_catch_up: int = Field(
        100, ge=1, le=10_000, description="At most this many fires for `catch_up: all`.", examples=[100]
    )
    type: Name = Field("schedule-fired", description="Type of the event.", examples=["schedule-fired"])
    owner: Owner = Field("", description="Whom the event is about.", examples=["plant-7"])
    payload: dict[str, JsonValue] = Field(
        default_factory=dict,
        description="JSON object the event carries.",
        examples=[{"report": "digest"}],
    )
    action: Name | None = Field(
        None, description="Name of an action to run at each fire.", examples=["email-digest"]
    )
    enabled: bool = Field(True, description="false pauses the schedule.", examples=[True])

    @field_validator("payload")
    @classmethod
    def _payload_is_plain_json(cls, payload: dict[str, JsonValue]) -> dict[str, JsonValue]:
        try:
            check_json_shape(payload)
        except InvalidInput as error:
            raise ValueError(str(error)) from None
        return payload

    @model_validator(mode="after")
    def _has_one_recurrence(self) -> Self:
        given = [key for key in RECURRENCE_KEYS if getattr(self, key) is not None]
        if not given:
            raise PydanticCustomError("one_of", "needs one of cron, rrule, every or at", {})
        if len(given) > 1:
            # `at_key` tells the loader which key of the file to point at.
            raise PydanticCustomError(
                "one_of",
                "has both '{first}' and '{at_key}': keep one of cron, rrule, every and at",
                {"first": given[0], "at_key": given[1]},
            )
        for key in ("dtstart", "exdates", "rdates"):
            if getattr(self, key) and self.rrule is None:
                raise PydanticCustomError(
                    "needs_rrule",
                    "has '{at_key}', which belongs to 'rrule', beside '{recurrence}': remove it",
                    {"at_key": key, "recurrence": given[0]},
                )
        return self
