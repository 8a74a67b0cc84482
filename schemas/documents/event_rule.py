"""The `event_rule` document: when an alarm opens, and when it resolves.

Guarantee: a model that exists is over datapoints or over events, never both; over datapoints it has exactly one
way to fire; keys that could never have an effect together are refused. The loader compiles the conditions and
looks for what the rule names, so that a rule that loads can run.

`above`, `below`, `absent` and `rate_increase` are short for a `fire` condition; see `rules.engine.shorthands`.
"""

from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from schemas.documents.action_rule import MAX_CONDITION_LENGTH
from schemas.values.duration import Duration
from schemas.values.key_pattern import KeyPattern
from schemas.values.names import EVENT_TYPE_PATTERN, Name
from schemas.values.severities import level
from schemas.values.template_text import MessageTemplate
from tocsin.core.errors import InvalidInput

FIRE_KEYS = ("fire", "above", "below", "absent", "rate_increase")


def _severity(name: str) -> str:
    try:
        level(name)
    except InvalidInput as error:
        raise ValueError(str(error)) from None
    return name


def _positive(duration: timedelta) -> timedelta:
    if not duration:
        raise ValueError("it must be longer than 0s: leave the key out instead")
    return duration


Severity = Annotated[str, Field(max_length=32), AfterValidator(_severity)]
PositiveDuration = Annotated[Duration, AfterValidator(_positive)]
Condition = Annotated[str, Field(max_length=MAX_CONDITION_LENGTH)]
Channels = Annotated[tuple[Name, ...], Field(strict=False, max_length=32)]
Threshold = Annotated[float, Field(allow_inf_nan=False)]


class Window(BaseModel):
    """Replaces `value` by what the datapoints of the last while amount to."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    over: PositiveDuration = Field(description="How far back, from each arrival.", examples=["10m"])
    reduce: Literal["avg", "min", "max", "sum", "count", "rate"] = Field(
        description="What `value` then is; `rate` is the change per second from the oldest to the newest.",
        examples=["avg"],
    )


class EventRuleDocument(BaseModel):
    """Opens an alarm per owner while a condition holds."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: Name = Field(description="Unique name of the rule.", examples=["dsp-hot"])
    description: str = Field("", description="For people.", examples=["see the runbook"], max_length=1_000)
    datapoint: KeyPattern | None = Field(
        None,
        description="Key of the datapoints to judge; `*` stands for one part of a key, `**` for one or more.",
        examples=["dsp.temperature", "dsp.*.temperature", "disk.**"],
    )
    event: Annotated[str, Field(pattern=EVENT_TYPE_PATTERN)] | None = Field(
        None,
        description="Type of the events to judge; `*` stands for any letters.",
        examples=["link-down", "link-*"],
    )
    where: Condition | None = Field(
        None,
        description="CEL over owner, key and labels (of an event: over its fields): what the rule is about.",
        examples=['labels.zone == "north"', 'owner.startsWith("plant-")'],
    )
    fire: Condition | None = Field(
        None, description="CEL; true begins the alarm.", examples=["value > 65.0", 'type == "link-down"']
    )
    clear: Condition | None = Field(
        None, description="CEL; true ends the alarm. Default: `fire` is false.", examples=["value < 60.0"]
    )
    above: Threshold | None = Field(None, description="Short for `fire: value > X`.", examples=[65])
    below: Threshold | None = Field(None, description="Short for `fire: value < X`.", examples=[5])
    absent: Literal[True] | None = Field(
        None, description="Fires while the series is stale (see datapoint_type).", examples=[True]
    )
    rate_increase: Threshold | None = Field(
        None, description="Short for `fire: rate > X`, in units per second.", examples=[0.5]
    )
    window: Window | None = Field(
        None, description="Judge what the last while amounts to.", examples=[{"over": "10m", "reduce": "avg"}]
    )
    for_: PositiveDuration | None = Field(
        None, alias="for", description="How long it must fire before the alarm opens.", examples=["10m"]
    )
    keep_firing_for: PositiveDuration | None = Field(
        None, description="How long it must be clear before the alarm resolves.", examples=["5m"]
    )
    cooldown: PositiveDuration | None = Field(
        None, description="Shortest time from one opening to the next.", examples=["1h"]
    )
    no_data: Literal["keep", "alarm", "resolve"] = Field(
        "keep",
        description="What a stale series counts as: as before, as firing, as clear.",
        examples=["alarm"],
    )
    no_data_for: PositiveDuration | None = Field(
        None, description="How long it must be stale before `no_data` takes effect.", examples=["5m"]
    )
    severity: Severity = Field("warning", description="Level of the alarm.", examples=["high"])
    message: MessageTemplate | None = Field(
        None, description="Text of the alarm.", examples=["{{ owner }} is at {{ value }} {{ unit }}"]
    )
    notify: Channels = Field((), description="Channels that are told of it.", examples=[["ops"]])
    enabled: bool = Field(True, description="false keeps the rule and resolves its alarms.", examples=[True])

    @model_validator(mode="after")
    def _is_over_one_thing(self) -> Self:
        if self.datapoint is None and self.event is None:
            raise _refusal("needs 'datapoint' or 'event'")
        if self.datapoint is not None and self.event is not None:
            raise _refusal("has both 'datapoint' and 'event': keep one", "event")
        return self

    @model_validator(mode="after")
    def _has_one_way_to_fire(self) -> Self:
        given = [key for key in FIRE_KEYS if getattr(self, key) is not None]
        if len(given) > 1:
            raise _refusal(f"has both '{given[0]}' and '{given[1]}': keep one", given[1])
        if self.event is None and not given:
            raise _refusal(f"needs one of {', '.join(FIRE_KEYS)}")
        if self.event is not None and self.fire is None and self.clear is None:
            raise _refusal(
                "would never resolve: add 'clear', and let 'event' match what ends it too", "event"
            )
        return self

    @model_validator(mode="after")
    def _has_no_key_without_effect(self) -> Self:
        if self.event is not None:
            keys = ("above", "below", "absent", "rate_increase", "window", "no_data_for")
            for key in keys:
                if getattr(self, key) is not None:
                    raise _refusal(f"is over events, which have no value: remove '{key}'", key)
            if self.no_data != "keep":
                raise _refusal("is over events, which are never stale: remove 'no_data'", "no_data")
        if self.no_data_for is not None and self.no_data == "keep":
            raise _refusal(
                "has 'no_data_for' without effect: add 'no_data: alarm' or 'resolve'", "no_data_for"
            )
        if self.absent and self.no_data != "keep":
            raise _refusal("fires on 'absent' already: remove 'no_data'", "no_data")
        if self.window is not None and self.absent:
            raise _refusal("has 'window' without effect beside 'absent': remove it", "window")
        if self.window is not None and self.rate_increase is not None:
            raise _refusal("has 'window': write 'reduce: rate' and 'above' instead", "rate_increase")
        return self


def _refusal(message: str, at_key: str = "") -> PydanticCustomError:
    return PydanticCustomError("one_of", "{text}", {"text": message, "at_key": at_key})
