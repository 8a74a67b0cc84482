"""The `wait` step: for a while, until a time of day, or until an event."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from schemas.documents.action_rule import MAX_CONDITION_LENGTH
from schemas.values.duration import Duration
from schemas.values.names import TIME_OF_DAY_PATTERN

WAIT_KEYS = ("for", "until", "until_event")


class WaitStep(BaseModel):
    """Lets time pass before the next step. It survives restarts: the wait is a timer."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, validate_by_name=True, serialize_by_alias=True
    )

    for_: Duration | None = Field(None, alias="for", description="How long.", examples=["10m"])
    until: Annotated[str, Field(pattern=TIME_OF_DAY_PATTERN)] | None = Field(
        None, description="The next time the clocks of `tz` show this.", examples=["08:00"]
    )
    tz: str = Field("UTC", description="IANA timezone of `until`.", examples=["Europe/London"])
    until_event: str | None = Field(
        None,
        description="CEL condition: the first event after this step begins that meets it.",
        examples=['type == "deploy-finished" && owner == "shop"'],
        max_length=MAX_CONDITION_LENGTH,
    )
    timeout: Duration | None = Field(
        None, description="How long to wait for the event at most.", examples=["1h"]
    )
    on_timeout: Literal["continue", "stop"] | None = Field(
        None,
        description="No event came: go on with the next step, or end the action as timed out.",
        examples=["stop"],
    )

    @model_validator(mode="after")
    def _waits_for_one_thing(self) -> Self:
        given = [
            key
            for key, value in zip(WAIT_KEYS, (self.for_, self.until, self.until_event), strict=True)
            if value is not None
        ]
        if not given:
            raise PydanticCustomError("one_of", "needs one of for, until or until_event", {})
        if len(given) > 1:
            raise PydanticCustomError(
                "one_of",
                "has both '{first}' and '{at_key}': keep one of for, until and until_event",
                {"first": given[0], "at_key": given[1]},
            )
        if (self.timeout is None) != (self.on_timeout is None):
            raise PydanticCustomError(
                "one_of", "has one of 'timeout' and 'on_timeout': give both, or neither", {}
            )
        if self.timeout is not None and self.until_event is None:
            raise PydanticCustomError(
                "one_of",
                "has '{at_key}', which belongs to 'until_event', beside '{first}': remove it",
                {"at_key": "timeout", "first": given[0]},
            )
        return self
