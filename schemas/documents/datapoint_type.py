"""The `datapoint_type` document: what a series holds, how often it speaks, and what its silence means.

Guarantee: a type that exists is watched exactly if it declares `interval` or `heartbeat`, never both. A series
that no type covers is stored and never watched. When several types cover a key, the most specific one holds:
`schemas.values.key_pattern.specificity`.
"""

from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from schemas.documents.event_rule import Channels, PositiveDuration, Severity
from schemas.values.key_pattern import KeyPattern
from schemas.values.names import Name, Owner

_OF_THE_ALARM = ("severity", "for_", "notify")


class DatapointTypeDocument(BaseModel):
    """What the datapoints of a key, or of keys that match a pattern, are."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: Name = Field(description="Unique name of the type.", examples=["dsp-temperature"])
    description: str = Field("", description="For people.", examples=["inlet sensor"], max_length=1_000)
    key: KeyPattern = Field(
        description="Key, or pattern: `*` stands for one part of a key, `**` for one or more.",
        examples=["dsp.temperature", "dsp.*.temperature"],
    )
    value: Literal["number", "string", "bool"] = Field(
        "number", description="What its values are; others are set aside.", examples=["number"]
    )
    unit: str = Field("", description="Unit of its values, for people.", examples=["°C"], max_length=32)
    interval: PositiveDuration | None = Field(
        None, description="How often a poller brings a value.", examples=["30s"]
    )
    heartbeat: PositiveDuration | None = Field(
        None, description="How often a listener speaks at least.", examples=["5m"]
    )
    tolerance: Annotated[float, Field(gt=1, le=1_000, allow_inf_nan=False)] = Field(
        2.5, description="Intervals without a datapoint until the series is stale.", examples=[2.5]
    )
    on_stale: Literal["hold", "unknown", "alarm"] = Field(
        "unknown",
        description="What silence means to the systems of the series: the last value still holds; we have lost sight "
        "of it; that, and an alarm.",
        examples=["alarm"],
    )
    severity: Severity | None = Field(
        None, description="Level of the alarm of `on_stale: alarm`; default warning.", examples=["high"]
    )
    for_: PositiveDuration | None = Field(
        None, alias="for", description="How long it must be stale before that alarm opens.", examples=["5m"]
    )
    notify: Channels = Field((), description="Channels that are told of that alarm.", examples=[["ops"]])
    owners: Annotated[tuple[Owner, ...], Field(strict=False, max_length=10_000)] = Field(
        (),
        description="Owners that should have this series: unknown until it is seen.",
        examples=[["plant-7"]],
    )
    labels: Annotated[dict[str, str], Field(max_length=32)] = Field(
        default_factory=dict,
        description="Labels of every series of this type; a datapoint's own win.",
        examples=[{"zone": "north"}],
    )

    @property
    def stale_after(self) -> timedelta | None:
        """How long after an arrival the series is stale; None: it is never watched."""
        cadence = self.interval or self.heartbeat
        return None if cadence is None else cadence * self.tolerance

    @model_validator(mode="after")
    def _has_one_cadence(self) -> Self:
        if self.interval is not None and self.heartbeat is not None:
            raise _refusal("has both 'interval' and 'heartbeat': keep one", "heartbeat")
        if self.on_stale == "alarm" and self.stale_after is None:
            raise _refusal("has 'on_stale: alarm' and is never watched: add 'interval'", "on_stale")
        if self.on_stale != "alarm":
            for field in _OF_THE_ALARM:
                if getattr(self, field):
                    key = field.rstrip("_")
                    raise _refusal(f"has '{key}' without effect: it belongs to 'on_stale: alarm'", key)
        return self


def _refusal(message: str, at_key: str) -> PydanticCustomError:
    return PydanticCustomError("one_of", "{text}", {"text": message, "at_key": at_key})
