"""The keys of a recurrence, which schedules and maintenance windows share.

Guarantee: exactly one recurrence key. The loader checks the recurrence with `timers.recurrence`.

Times stay texts here: their meaning depends on `tz`, and an apply compares them as they were
written. A Unix timestamp becomes an ISO text. Phrases such as "tomorrow at 9am" are rejected: a rule
file must mean the same whenever it is applied.
"""

import re
from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, JsonValue, WithJsonSchema, model_validator
from pydantic.json_schema import SkipJsonSchema

from schemas.documents.calendar import CalendarNames
from schemas.documents.strict_model import StrictModel, document_error
from schemas.values.names import Name
from tocsin.core.instant import EPOCH, instant_text

RECURRENCE_KEYS = ("cron", "rrule", "every", "at")

MAX_UNIX_S = 253_370_764_800
"""The year 9999."""
_UNIX = re.compile(r"[0-9]{9,12}(\.[0-9]{1,6})?")
WallTimes = Annotated[tuple[str, ...], Field(strict=False, max_length=1000)]


def _time_text(value: object) -> object:
    """A Unix timestamp in seconds as an ISO text; any other value as it is."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number and not (isinstance(value, str) and _UNIX.fullmatch(value)):
        return value
    seconds = float(value)  # type: ignore[arg-type]
    if not 0 <= seconds < MAX_UNIX_S:
        raise ValueError(f"{value} is not a Unix timestamp in seconds")
    instant = EPOCH + timedelta(microseconds=round(seconds * 1_000_000))
    return instant_text(instant)


Time = Annotated[
    str,
    BeforeValidator(_time_text),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "number", "minimum": 0}]}),
]
"""A time as a text: its meaning depends on `tz`."""


class RecurrenceDocument(StrictModel):
    """A document with a name and a recurrence in a timezone."""

    model_config = ConfigDict(serialize_by_alias=True)

    name: Name = Field(description="Unique name.")
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
    at: Time | None = Field(
        None,
        description="One occurrence: an absolute instant, a Unix timestamp, or a wall time in `tz`.",
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
    starts_at: Time | None = Field(
        None,
        description="Nothing fires before this instant, or wall time in `tz`.",
        examples=["2027-01-01T00:00:00Z"],
    )
    ends_at: Time | None = Field(
        None,
        description="Nothing fires after this instant, or wall time in `tz`.",
        examples=["2027-12-31T23:59:59"],
    )

    only_in: CalendarNames = Field(
        (),
        description="Calendars: it fires only on days that are in all of them.",
        examples=[["business-days"]],
    )
    except_: CalendarNames = Field(
        (),
        alias="except",
        description="Calendars: it does not fire on days that are in one of them.",
        examples=[["us-holidays"]],
    )
    shift: Literal["next", "previous"] | None = Field(
        None,
        description="Moves an occurrence on another day to the next or previous allowed day, at the same time.",
        examples=["previous"],
    )
    days: SkipJsonSchema[dict[str, JsonValue] | None] = Field(
        None,
        description="The content of its calendars, filled in when the file is loaded. Never written by hand.",
        examples=[None],
    )

    @model_validator(mode="after")
    def _has_one_recurrence(self) -> Self:
        present = [key for key in RECURRENCE_KEYS if getattr(self, key) is not None]
        if not present:
            raise document_error("needs one of cron, rrule, every or at")
        if len(present) > 1:
            raise document_error(
                f"has both '{present[0]}' and '{present[1]}': keep one of cron, rrule, every and at",
                present[1],
            )
        for key in ("dtstart", "exdates", "rdates"):
            if getattr(self, key) and self.rrule is None:
                raise document_error(
                    f"has '{key}', which belongs to 'rrule', and '{present[0]}': remove '{key}'", key
                )
        return self
