"""The `event_rule` document: the conditions under which an alarm opens and resolves.

Guarantee: a rule is over datapoints, over events or over other alarms. Over datapoints it has exactly one
way to fire. A combination of keys without an effect is an error. The loader compiles the conditions
and looks for everything that the rule names, so that a rule that loads can run.

`above`, `below`, `absent` and `rate_increase` are short for a `fire` condition; see
`rules.engine.shorthands`.
"""

from datetime import timedelta
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    SerializerFunctionWrapHandler,
    Tag,
    model_serializer,
    model_validator,
)

from schemas.documents.action_rule import MAX_CONDITION_LENGTH
from schemas.documents.active_times import ActiveTimes
from schemas.documents.alarms_condition import AlarmsDocument
from schemas.documents.channel_names import Channels
from schemas.documents.strict_model import UNION_TAG, StrictModel, document_error
from schemas.values.annotation import Description, RunbookUrl, Title
from schemas.values.duration import Duration
from schemas.values.key_pattern import KeyPattern
from schemas.values.names import EVENT_TYPE_PATTERN, Name
from schemas.values.pydantic_check import pydantic_check
from schemas.values.severities import level
from schemas.values.template_text import MessageTemplate

FIRE_KEYS = ("fire", "above", "below", "absent", "rate_increase")


def _check_severity(name: str) -> str:
    level(name)
    return name


def _check_positive(duration: timedelta) -> timedelta:
    if not duration:
        raise ValueError("it must be longer than 0s: leave the key out instead")
    return duration


Severity = Annotated[str, Field(max_length=32), AfterValidator(pydantic_check(_check_severity))]
PositiveDuration = Annotated[Duration, AfterValidator(_check_positive)]
Condition = Annotated[str, Field(max_length=MAX_CONDITION_LENGTH)]
Threshold = Annotated[float, Field(allow_inf_nan=False)]
EVENT_SEVERITY = "event"


def _check_rule_severity(name: str) -> str:
    return name if name == EVENT_SEVERITY else _check_severity(name)


RuleSeverity = Annotated[str, Field(max_length=32), AfterValidator(pydantic_check(_check_rule_severity))]
Levels = Annotated[dict[Severity, Threshold], Field(min_length=1, max_length=16)]
Thresholds = Annotated[
    Annotated[Threshold, Tag(f"{UNION_TAG}number")] | Annotated[Levels, Tag(f"{UNION_TAG}levels")],
    Discriminator(lambda value: f"{UNION_TAG}{'levels' if isinstance(value, dict) else 'number'}"),
]


def _check_per(per: str | tuple[str, ...]) -> str | tuple[str, ...]:
    if isinstance(per, str) and per not in ("series", "owner"):
        raise ValueError(f"'{per}' is not known: write series, owner, or a list of expressions")
    if not per:
        raise ValueError("the list is empty: leave the key out instead")
    return per


Per = Annotated[
    str | Annotated[tuple[Condition, ...], Field(strict=False, max_length=8)], AfterValidator(_check_per)
]


class WindowDocument(StrictModel):
    """Replaces `value` by an aggregate of the last datapoints."""

    over: PositiveDuration = Field(description="Length of the window before each arrival.", examples=["10m"])
    reduce: Literal["avg", "min", "max", "sum", "count", "rate"] = Field(
        description="Aggregate of the values; `rate` is the change per second from the oldest to the newest.",
        examples=["avg"],
    )
    min_count: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        1,
        description="Number of datapoints below which the window has no value, and does not fire.",
        examples=[3],
    )


class SamplesDocument(StrictModel):
    """Fires if enough of the last datapoints fire."""

    of: Annotated[int, Field(ge=2, le=100)] = Field(
        description="Number of the last datapoints that are looked at.", examples=[5]
    )
    at_least: Annotated[int, Field(ge=1, le=100)] = Field(
        description="Number of them that must fire.", examples=[3]
    )

    @model_validator(mode="after")
    def _is_possible(self) -> Self:
        if self.at_least > self.of:
            raise document_error(f"asks for {self.at_least} of {self.of} datapoints: write at most {self.of}")
        return self


class EventRuleDocument(StrictModel):
    """Opens an alarm per series, owner or value of an event while a condition holds."""

    name: Name = Field(description="Unique name of the rule.", examples=["dsp-hot"])
    title: Title = ""
    description: Description = ""
    runbook_url: RunbookUrl = ""
    datapoint: KeyPattern | None = Field(
        None,
        description="Key of the datapoints to evaluate; `*` stands for one part of a key, `**` for one or more.",
        examples=["dsp.temperature", "dsp.*.temperature", "disk.**"],
    )
    event: Annotated[str, Field(pattern=EVENT_TYPE_PATTERN)] | None = Field(
        None,
        description="Type of the events to evaluate; `*` stands for any letters.",
        examples=["link-down", "link-*"],
    )
    alarms: AlarmsDocument | None = Field(
        None,
        description="Condition over the open alarms of other rules, of the same owner.",
        examples=[{"all_of": ["pump-hot", "flow-low"]}],
    )
    per: Per | None = Field(
        None,
        description="What has an alarm of its own: each `series` (default over datapoints), the `owner` as a whole "
        "(default over events), or over events each combination of the values of CEL expressions.",
        examples=["owner", ["payload.interface"]],
    )
    where: Condition | None = Field(
        None,
        description="CEL over owner, key and labels (of an event: over its fields); selects series or events.",
        examples=['labels.zone == "north"', 'owner.startsWith("plant-")'],
    )
    fire: Condition | None = Field(
        None,
        description="CEL; true: the condition of the alarm holds.",
        examples=["value > 65.0", 'type == "link-down"'],
    )
    clear: Condition | None = Field(
        None,
        description="CEL; true: the condition no longer holds. Default: `fire` is false.",
        examples=["value < 60.0"],
    )
    above: Thresholds | None = Field(
        None,
        description="Short for `fire: value > X`. A mapping from severities to thresholds makes levels of one alarm.",
        examples=[65, {"warning": 80, "critical": 95}],
    )
    below: Thresholds | None = Field(
        None, description="Short for `fire: value < X`; levels as in `above`.", examples=[5]
    )
    absent: Literal[True] | None = Field(
        None, description="Fires while the series is stale (see datapoint_type).", examples=[True]
    )
    rate_increase: Threshold | None = Field(
        None, description="Short for `fire: rate > X`, in units per second.", examples=[0.5]
    )
    window: WindowDocument | None = Field(
        None,
        description="Evaluate an aggregate of the last datapoints.",
        examples=[{"over": "10m", "reduce": "avg"}],
    )
    samples: SamplesDocument | None = Field(
        None,
        description="Fires if enough of the last datapoints fire, instead of the last one alone.",
        examples=[{"of": 5, "at_least": 3}],
    )
    count: Annotated[int, Field(ge=2, le=1_000)] | None = Field(
        None, description="Over events: number of events that fire within `over`.", examples=[5]
    )
    over: PositiveDuration | None = Field(
        None, description="With `count`: the time in which the events are counted.", examples=["10m"]
    )
    for_: PositiveDuration | None = Field(
        None, alias="for", description="Time that it must fire before the alarm opens.", examples=["10m"]
    )
    keep_firing_for: PositiveDuration | None = Field(
        None, description="Time that it must be clear before the alarm resolves.", examples=["5m"]
    )
    cooldown: PositiveDuration | None = Field(
        None, description="Shortest time from one opening to the next.", examples=["1h"]
    )
    no_data: Literal["keep", "alarm", "resolve"] = Field(
        "keep",
        description="How a stale series counts: as before, as firing, as clear.",
        examples=["alarm"],
    )
    no_data_for: PositiveDuration | None = Field(
        None, description="Time that it must be stale before `no_data` takes effect.", examples=["5m"]
    )
    active_in: ActiveTimes | None = Field(
        None,
        description="Times in which it fires. Outside of them no alarm opens, and values that fire count as clear.",
        examples=[{"only_in": ["business-days"], "hours": ["08:00-18:00"], "tz": "Europe/London"}],
    )
    severity: RuleSeverity = Field(
        "warning",
        description="Level of the alarm. Over events, `event` takes the severity of the event.",
        examples=["high", "event"],
    )
    message: MessageTemplate | None = Field(
        None, description="Text of the alarm.", examples=["{{ owner }} is at {{ value }} {{ unit }}"]
    )
    notify: Channels = Field((), description="Channels that are notified.", examples=[["ops"]])
    repeat: PositiveDuration | None = Field(
        None,
        description="Notify the channels again after this time, until the alarm is acknowledged or resolved.",
        examples=["30m"],
    )
    enabled: bool = Field(True, description="false keeps the rule and resolves its alarms.", examples=[True])

    @model_serializer(mode="wrap")
    def _dump_severity_once(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Levels replace `severity`, so a stored rule with levels has none and can be read again."""
        stored: dict[str, Any] = dump(self)
        if isinstance(self.above, dict) or isinstance(self.below, dict):
            stored.pop("severity", None)
        return stored

    @model_validator(mode="after")
    def _is_over_one_thing(self) -> Self:
        keys = ("datapoint", "event", "alarms")
        present = [key for key in keys if getattr(self, key) is not None]
        if not present:
            raise document_error("needs 'datapoint', 'event' or 'alarms'")
        if len(present) > 1:
            raise document_error(f"has both '{present[0]}' and '{present[1]}': keep one", present[1])
        return self

    @model_validator(mode="after")
    def _has_one_way_to_fire(self) -> Self:
        present = [key for key in FIRE_KEYS if getattr(self, key) is not None]
        if len(present) > 1:
            raise document_error(f"has both '{present[0]}' and '{present[1]}': keep one", present[1])
        if self.datapoint is not None and not present:
            raise document_error(f"needs one of {', '.join(FIRE_KEYS)}")
        if self.event is not None and self.fire is None and self.clear is None and self.count is None:
            raise document_error(
                "would never resolve: add 'clear', and let 'event' match the event that ends it too", "event"
            )
        return self

    @model_validator(mode="after")
    def _repeats_to_channels(self) -> Self:
        if self.repeat is not None and not self.notify:
            raise document_error("has 'repeat' without 'notify': name the channels", "repeat")
        return self

    @model_validator(mode="after")
    def _has_no_key_without_effect(self) -> Self:
        if self.event is not None:
            self._check_over_events()
        elif self.alarms is not None:
            self._check_over_alarms()
        else:
            self._check_over_datapoints()
        if (self.count is None) != (self.over is None):
            key, other = ("count", "over") if self.over is None else ("over", "count")
            raise document_error(f"has '{key}' without '{other}'", key)
        if self.no_data_for is not None and self.no_data == "keep":
            raise document_error(
                "has 'no_data_for' without effect: add 'no_data: alarm' or 'resolve'", "no_data_for"
            )
        if self.absent and self.no_data != "keep":
            raise document_error("fires on 'absent' already: remove 'no_data'", "no_data")
        for key in ("window", "samples"):
            if getattr(self, key) is not None and self.absent:
                raise document_error(f"has '{key}' without effect with 'absent': remove it", key)
        if self.window is not None and self.rate_increase is not None:
            raise document_error("has 'window': write 'reduce: rate' and 'above' instead", "rate_increase")
        if self.samples is not None and self.window is not None:
            raise document_error("has both 'samples' and 'window': keep one", "samples")
        return self

    @model_validator(mode="after")
    def _is_active_at_inputs(self) -> Self:
        """When active times begin, nothing arrives: a condition that holds already would not be seen."""
        if self.active_in is None:
            return self
        remedy = "put 'active_in' on the action_rule or the channel"
        if self.alarms is not None:
            raise document_error(f"is over alarms: {remedy}, or on the rules that it refers to", "active_in")
        if self.absent or self.no_data == "alarm":
            key = "absent" if self.absent else "no_data"
            raise document_error(f"has both '{key}' and 'active_in': {remedy}", "active_in")
        return self

    def _check_over_events(self) -> None:
        if self.per == "series":
            raise document_error(
                "is over events, which have no series: list expressions such as [payload.interface]", "per"
            )
        keys = ("above", "below", "absent", "rate_increase", "window", "samples", "no_data_for")
        for key in keys:
            if getattr(self, key) is not None:
                raise document_error(f"is over events, which have no value: remove '{key}'", key)
        if self.no_data != "keep":
            raise document_error("is over events, which are never stale: remove 'no_data'", "no_data")
        if self.count is not None and self.for_ is not None:
            raise document_error("has 'for' without effect with 'count': remove it", "for")

    def _check_over_alarms(self) -> None:
        keys = ("where", *FIRE_KEYS, "clear", "window", "samples", "count", "no_data_for")
        for key in keys:
            if getattr(self, key) is not None:
                raise document_error(f"is over alarms, whose clauses are the condition: remove '{key}'", key)
        if self.per not in (None, "owner"):
            raise document_error("is over alarms: it has one alarm per owner, remove 'per'", "per")
        if self.no_data != "keep":
            raise document_error("is over alarms, which are never stale: remove 'no_data'", "no_data")
        if self.severity == EVENT_SEVERITY:
            raise document_error("is over alarms: name a level", "severity")

    def _check_over_datapoints(self) -> None:
        if isinstance(self.per, tuple):
            raise document_error("is over datapoints: write 'per: series' or 'per: owner'", "per")
        if self.count is not None:
            text = "is over datapoints: count them with 'window: {over: 10m, reduce: count}'"
            raise document_error(text, "count")
        if self.severity == EVENT_SEVERITY:
            raise document_error("is over datapoints, which have no severity: name a level", "severity")
        self._check_levels()

    def _check_levels(self) -> None:
        """A higher severity needs a threshold that is reached later."""
        for key, sign in (("above", 1), ("below", -1)):
            thresholds = getattr(self, key)
            if not isinstance(thresholds, dict):
                continue
            if "severity" in self.model_fields_set:
                raise document_error(f"has levels in '{key}': remove 'severity'", "severity")
            ordered = sorted(thresholds.items(), key=lambda item: level(item[0]))
            for (lower, earlier), (higher, later) in pairwise(ordered):
                if sign * later <= sign * earlier:
                    raise document_error(
                        f"reaches '{higher}' no later than '{lower}': the higher level needs the threshold "
                        f"further {key}",
                        key,
                    )
