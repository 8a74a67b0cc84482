"""The `wait` step: for a duration, until a time of day, or until an event."""

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from schemas.documents.action_rule import MAX_CONDITION_LENGTH
from schemas.documents.strict_model import StrictModel, document_error
from schemas.values.duration import Duration
from schemas.values.names import TIME_OF_DAY_PATTERN

WAIT_KEYS = ("for", "until", "until_event")


class WaitStep(StrictModel):
    """Waits before the next step. The wait is a timer, so it survives restarts."""

    model_config = ConfigDict(validate_by_name=True, serialize_by_alias=True)

    for_: Duration | None = Field(None, alias="for", description="Duration of the wait.", examples=["10m"])
    until: Annotated[str, Field(pattern=TIME_OF_DAY_PATTERN)] | None = Field(
        None, description="The next time at which the clocks of `tz` show this.", examples=["08:00"]
    )
    tz: str = Field("UTC", description="IANA timezone of `until`.", examples=["Europe/London"])
    days: str | None = Field(
        None,
        description="Days of the week on which `until` counts, as in a cron expression (default: all).",
        examples=["MON-FRI", "SAT,SUN"],
        max_length=40,
    )
    until_event: str | None = Field(
        None,
        description="CEL condition; the first event that meets it after the step has begun ends the wait.",
        examples=['type == "deploy-finished" && owner == "shop"'],
        max_length=MAX_CONDITION_LENGTH,
    )
    timeout: Duration | None = Field(None, description="Longest time to wait for the event.", examples=["1h"])
    on_timeout: Literal["continue", "stop"] | None = Field(
        None,
        description="Without an event: continue with the next step, or end the run as timed out.",
        examples=["stop"],
    )

    @model_validator(mode="after")
    def _waits_for_one_thing(self) -> Self:
        present = [
            key
            for key, value in zip(WAIT_KEYS, (self.for_, self.until, self.until_event), strict=True)
            if value is not None
        ]
        if not present:
            raise document_error("needs one of for, until or until_event")
        if len(present) > 1:
            raise document_error(
                f"has both '{present[0]}' and '{present[1]}': keep one of for, until and until_event",
                present[1],
            )
        if self.days is not None and self.until is None:
            raise document_error(
                f"has 'days', which belongs to 'until', and '{present[0]}': remove 'days'", "days"
            )
        if (self.timeout is None) != (self.on_timeout is None):
            raise document_error("has one of 'timeout' and 'on_timeout': give both, or neither")
        if self.timeout is not None and self.until_event is None:
            raise document_error(
                f"has 'timeout', which belongs to 'until_event', and '{present[0]}': remove 'timeout'",
                "timeout",
            )
        return self
