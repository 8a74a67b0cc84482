"""Times of the week by calendars and hours of the day, of rules and channels.

Guarantee: at least one of calendars and hours. The loader checks the hours, the timezone and the names
of the calendars, and fills in the content of the calendars, which is part of the stored version: a
replay uses the days of the time.
"""

from typing import Annotated, Self

from pydantic import ConfigDict, Field, JsonValue, model_validator
from pydantic.json_schema import SkipJsonSchema

from schemas.documents.calendar import CalendarNames
from schemas.documents.strict_model import StrictModel, document_error

MAX_HOURS = 24


class ActiveTimes(StrictModel):
    """Days by calendars, hours of the wall clock, or both."""

    model_config = ConfigDict(serialize_by_alias=True)

    only_in: CalendarNames = Field(
        (), description="Calendars: only days that are in all of them.", examples=[["business-days"]]
    )
    except_: CalendarNames = Field(
        (),
        alias="except",
        description="Calendars: no days that are in one of them.",
        examples=[["us-holidays"]],
    )
    hours: Annotated[tuple[str, ...], Field(strict=False, max_length=MAX_HOURS)] = Field(
        (),
        description="Hours of the day, the end excluded. Hours that end before they begin belong to the day "
        "on which they begin.",
        examples=[["08:00-18:00"], ["22:00-06:00"]],
    )
    tz: str = Field(
        "UTC", description="IANA timezone of the days and hours.", examples=["Europe/London", "UTC"]
    )
    days: SkipJsonSchema[dict[str, JsonValue] | None] = Field(
        None,
        description="The content of its calendars, filled in when the file is loaded. Never written by hand.",
        examples=[None],
    )

    @model_validator(mode="after")
    def _has_times(self) -> Self:
        if not (self.only_in or self.except_ or self.hours):
            raise document_error("needs one of only_in, except or hours")
        return self
