"""The `datapoint_type` document: the values of series, their expected interval, and the effect of
staleness.

Guarantee: a type is watched if, and only if, it declares `interval` or `heartbeat`, never both. A
series without a type is stored and never watched. If several types match a key, the most specific
one applies: `schemas.values.key_pattern.specificity`.
"""

from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from schemas.documents.channel_names import Channels
from schemas.documents.event_rule import PositiveDuration, Severity
from schemas.documents.strict_model import StrictModel, document_error
from schemas.values.annotation import Description, RunbookUrl, Title
from schemas.values.key_pattern import KeyPattern
from schemas.values.names import Name, Owner

Dimension = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*$", max_length=64)]
_ALARM_FIELDS = ("severity", "for_", "notify", "repeat")


class DatapointTypeDocument(StrictModel):
    """The type of the datapoints of a key, or of keys that match a pattern."""

    name: Name = Field(description="Unique name of the type.", examples=["dsp-temperature"])
    title: Title = ""
    description: Description = ""
    runbook_url: RunbookUrl = ""
    key: KeyPattern = Field(
        description="Key, or pattern: `*` stands for one part of a key, `**` for one or more.",
        examples=["dsp.temperature", "dsp.*.temperature"],
    )
    value: Literal["number", "string", "bool"] = Field(
        "number", description="Type of its values; others are rejected.", examples=["number"]
    )
    unit: str = Field("", description="Unit of its values, for readers.", examples=["°C"], max_length=32)
    counter: bool = Field(
        False,
        description="Its values only rise, and begin again at 0 when the producer restarts: `rate` ignores the fall.",
        examples=[True],
    )
    interval: PositiveDuration | None = Field(
        None, description="Time between two values of a poller.", examples=["30s"]
    )
    heartbeat: PositiveDuration | None = Field(
        None, description="Longest time between two values of a listener.", examples=["5m"]
    )
    tolerance: Annotated[float, Field(gt=1, le=1_000, allow_inf_nan=False)] = Field(
        2.5, description="Number of intervals without a datapoint until the series is stale.", examples=[2.5]
    )
    on_stale: Literal["hold", "unknown", "alarm"] = Field(
        "unknown",
        description="Effect of a stale series on its systems: the last value still counts; its status is unknown; "
        "its status is unknown and an alarm opens.",
        examples=["alarm"],
    )
    severity: Severity | None = Field(
        None, description="Level of the alarm of `on_stale: alarm`; default warning.", examples=["high"]
    )
    for_: PositiveDuration | None = Field(
        None,
        alias="for",
        description="Time that the series must be stale before that alarm opens.",
        examples=["5m"],
    )
    notify: Channels = Field((), description="Channels that are notified of that alarm.", examples=[["ops"]])
    repeat: PositiveDuration | None = Field(
        None,
        description="Notify the channels again after this time, until that alarm is acknowledged or resolved.",
        examples=["30m"],
    )
    owners: Annotated[tuple[Owner, ...], Field(strict=False, max_length=10_000)] = Field(
        (),
        description="Owners that are expected to have this series: its status is unknown until it sends data.",
        examples=[["plant-7"]],
    )
    labels: Annotated[dict[str, str], Field(max_length=32)] = Field(
        default_factory=dict,
        description="Labels of every series of this type; labels of a datapoint override them.",
        examples=[{"zone": "north"}],
    )

    dimensions: Annotated[tuple[Dimension, ...], Field(strict=False, max_length=8)] = Field(
        (),
        description="Labels that distinguish series: each combination of their values is a series of its own.",
        examples=[["core"]],
    )

    @property
    def stale_after(self) -> timedelta | None:
        """Time from an arrival to staleness; None for a type that is not watched."""
        interval = self.interval or self.heartbeat
        return None if interval is None else interval * self.tolerance

    @model_validator(mode="after")
    def _has_no_key_without_effect(self) -> Self:
        if self.interval is not None and self.heartbeat is not None:
            raise document_error("has both 'interval' and 'heartbeat': keep one", "heartbeat")
        if self.on_stale == "alarm" and self.stale_after is None:
            raise document_error("has 'on_stale: alarm' and is never watched: add 'interval'", "on_stale")
        if self.repeat is not None and not self.notify and self.on_stale == "alarm":
            raise document_error("has 'repeat' without 'notify': name the channels", "repeat")
        if self.on_stale != "alarm":
            for field in _ALARM_FIELDS:
                if getattr(self, field):
                    key = field.rstrip("_")
                    raise document_error(f"has '{key}' without effect: it belongs to 'on_stale: alarm'", key)
        if self.counter and self.value != "number":
            raise document_error("has 'counter', and its values are no numbers: remove it", "counter")
        if len(set(self.dimensions)) < len(self.dimensions):
            raise document_error("names a dimension twice: name each once", "dimensions")
        return self
