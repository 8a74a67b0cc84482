"""The `calendar` document: a named set of days.

Guarantee: the set depends on the document and the calendars that it names, never on installed data or
the present time, so a replay uses the days of the time. The loader checks dates, rrules and names.

A calendar has no timezone: a day is that of the wall clock in the timezone of the document that uses
it.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from schemas.documents.strict_model import StrictModel, document_error
from schemas.values.annotation import Description, Title
from schemas.values.names import Name

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
CalendarNames = Annotated[tuple[Name, ...], Field(strict=False, max_length=20)]
MAX_DATES = 5_000
_OWN = ("weekdays", "dates", "yearly", "rrules")
_PARTS = (*_OWN, "any_of", "all_of", "none_of")


class CalendarDocument(StrictModel):
    """A set of days, such as holidays or business days, for schedules, rules and channels."""

    name: Name = Field(description="Unique name of the calendar.", examples=["business-days"])
    weekdays: Annotated[tuple[Weekday, ...], Field(strict=False)] = Field(
        (), description="Days of the week.", examples=[["mon", "tue", "wed", "thu", "fri"]]
    )
    dates: Annotated[tuple[str, ...], Field(strict=False, max_length=MAX_DATES)] = Field(
        (),
        description="Dates, and ranges of dates with both ends.",
        examples=[["2026-11-26", "2026-12-24/2026-12-26"]],
    )
    yearly: Annotated[tuple[str, ...], Field(strict=False, max_length=366)] = Field(
        (), description="Days of every year, as month and day.", examples=[["12-25", "01-01"]]
    )
    rrules: Annotated[tuple[str, ...], Field(strict=False, max_length=50)] = Field(
        (),
        description="Recurrence rules of RFC 5545 whose days belong to the calendar.",
        examples=[["FREQ=YEARLY;BYMONTH=11;BYDAY=4TH"]],
    )
    dtstart: str | None = Field(
        None, description="First day of the `rrules` (default: 1970-01-01).", examples=["2026-01-05"]
    )
    any_of: CalendarNames = Field(
        (), description="Calendars whose days belong to this one as well.", examples=[["us-holidays"]]
    )
    all_of: CalendarNames = Field(
        (), description="Calendars in all of which a day must be.", examples=[["weekdays"]]
    )
    none_of: CalendarNames = Field(
        (), description="Calendars in none of which a day may be.", examples=[["us-holidays"]]
    )
    valid_until: str | None = Field(
        None,
        description="Last day for which the days are known; `check` warns from two months before it on.",
        examples=["2028-12-31"],
    )
    title: Title | None = Field(None, description="A name for people.", examples=["Holidays in the US"])
    description: Description | None = Field(
        None, description="A note for readers.", examples=["From the holiday list of the exchange."]
    )

    @model_validator(mode="after")
    def _has_days(self) -> Self:
        if not any(getattr(self, key) for key in _PARTS):
            raise document_error(f"has no days: add one of {', '.join(_PARTS[:-1])} or {_PARTS[-1]}")
        if self.dtstart is not None and not self.rrules:
            raise document_error("has 'dtstart', which belongs to 'rrules': remove it", "dtstart")
        return self
