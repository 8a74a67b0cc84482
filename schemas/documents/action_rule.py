"""The `action_rule` document: the events or the transitions of alarms that start an action, or the
alarms that channels are notified about.

Guarantee: names are safe tokens, and `when` has at most 2,000 characters. A combination of keys
without an effect is an error. The loader compiles `when` and looks for the action and the channels,
so that a rule that loads can run.
"""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from schemas.documents.active_times import ActiveTimes
from schemas.documents.channel_names import Channels
from schemas.documents.strict_model import StrictModel, document_error
from schemas.fields import INT_FIELDS, PAYLOAD_FIELD, STRING_FIELDS
from schemas.values.annotation import Description, RunbookUrl, Title
from schemas.values.duration import Duration
from schemas.values.names import Name
from schemas.wire.alarm_events import ActionTransition

MAX_CONDITION_LENGTH = 2_000
_PAYLOAD_PATH = re.compile(rf"({PAYLOAD_FIELD}|labels)(\.[A-Za-z0-9_-]+)+")
_GROUP_FIELDS = tuple(field for field in (*STRING_FIELDS, *INT_FIELDS) if field not in ("id", "seq"))


def _check_group_field(field: str) -> str:
    if field not in _GROUP_FIELDS and not _PAYLOAD_PATH.fullmatch(field):
        raise ValueError(
            f"'{field}' cannot group events: use {', '.join(_GROUP_FIELDS)}, labels.<name> or payload.<key>"
        )
    return field


GroupField = Annotated[str, AfterValidator(_check_group_field)]
EndingTransition = Literal["resolved", "acknowledged"]
ENDING_TRANSITIONS: tuple[EndingTransition, ...] = ("resolved", "acknowledged")
EndsWith = Literal["never"] | Annotated[tuple[EndingTransition, ...], Field(strict=False, min_length=1)]


class RateLimit(StrictModel):
    """The largest number of starts within a time."""

    count: Annotated[int, Field(ge=1, le=1_000)] = Field(
        description="Largest number of starts.", examples=[5]
    )
    per: Duration = Field(description="Within this time.", examples=["1h"])


class ActionRuleDocument(StrictModel):
    """Runs an action for each event, or each transition of an alarm, that meets a condition."""

    name: Name = Field(description="Unique name of the rule.", examples=["digest"])
    title: Title = ""
    description: Description = ""
    runbook_url: RunbookUrl = ""
    on: Literal["event", "alarm"] = Field(
        description="Whether the rule reads all events, or transitions of alarms.", examples=["event"]
    )
    transitions: Annotated[tuple[ActionTransition, ...], Field(strict=False, min_length=1)] = Field(
        ("opened",),
        description="With `on: alarm`: transitions of an alarm that start the action.",
        examples=[["opened"]],
    )
    when: str | None = Field(
        None,
        description="CEL condition over the event; true starts the action. Required with `on: event`.",
        examples=['origin == "scheduled" && schedule == "daily-digest"', "severity >= high"],
        max_length=MAX_CONDITION_LENGTH,
    )
    active_in: ActiveTimes | None = Field(
        None,
        description="Times in which it starts runs. An event outside of them is skipped, with the reason.",
        examples=[{"except": ["us-holidays"], "hours": ["08:00-18:00"], "tz": "America/New_York"}],
    )
    action: Name | None = Field(None, description="Name of the action to run.", examples=["email-digest"])
    notify: Channels = Field(
        (),
        description="With `on: alarm`, instead of `action`: channels that are notified about the alarms, "
        "as by `notify` of an event_rule.",
        examples=[["ops"]],
    )
    group_by: Annotated[tuple[GroupField, ...], Field(strict=False, max_length=8)] = Field(
        (),
        description="Events with equal values of these fields share a run; `labels.site` is short for "
        "`payload.labels.site`.",
        examples=[["owner", "rule"]],
    )
    group_wait: Duration | None = Field(
        None,
        description="Time during which a run gathers events before it begins; with `notify` and `group_by` "
        "the default is 30s.",
        examples=["30s"],
    )
    group_interval: Duration | None = Field(
        None,
        description="With `notify` and a group: shortest time between two messages of the group; default 5m.",
        examples=["5m"],
    )
    repeat: Duration | None = Field(
        None,
        description="With `notify`: notify again after this time, until every alarm is acknowledged or resolved.",
        examples=["30m"],
    )
    rate_limit: RateLimit | None = Field(
        None,
        description="Largest number of starts within a time; what exceeds it is gathered into one run, which "
        "begins when the limit allows it.",
        examples=[{"count": 5, "per": "1h"}],
    )
    overlap: Literal["allow", "skip", "queue", "replace"] = Field(
        "allow",
        description="While a run of this rule (and group) is active: start another, skip the new one, queue it, "
        "or cancel the active one.",
        examples=["skip"],
    )
    ends_with: EndsWith = Field(
        ENDING_TRANSITIONS,
        description="Transitions of its alarm that cancel a run, or `never`.",
        examples=[["resolved"], "never"],
    )
    enabled: bool = Field(True, description="false keeps the rule, but it starts nothing.", examples=[True])

    @property
    def ending_transitions(self) -> tuple[EndingTransition, ...]:
        return () if self.ends_with == "never" else self.ends_with

    @property
    def condition(self) -> str:
        return "true" if self.when is None else self.when

    @property
    def is_grouped(self) -> bool:
        """Whether alarms share notifications (only with `notify`)."""
        return bool(self.group_by) or self.group_wait is not None

    @model_validator(mode="after")
    def _has_one_effect(self) -> Self:
        if self.action is None and not self.notify:
            raise document_error("needs 'action', or 'notify' with 'on: alarm'")
        if self.action is not None and self.notify:
            raise document_error("has both 'action' and 'notify': keep one", "notify")
        if not self.notify:
            for key in ("group_interval", "repeat"):
                if getattr(self, key) is not None:
                    raise document_error(f"has '{key}', which belongs to 'notify': remove it", key)
        return self

    @model_validator(mode="after")
    def _notifies_about_alarms(self) -> Self:
        if not self.notify:
            return self
        if self.on != "alarm":
            raise document_error("has 'notify', which belongs to 'on: alarm'", "notify")
        if self.transitions != ("opened",):
            raise document_error("has 'notify', which follows every transition: remove it", "transitions")
        for key in ("rate_limit", "overlap"):
            if key in self.model_fields_set and getattr(self, key) not in (None, "allow"):
                raise document_error(f"has '{key}' without effect with 'notify': remove it", key)
        if self.group_interval is not None and not self.is_grouped:
            raise document_error("has 'group_interval' without 'group_by'", "group_interval")
        for key in ("group_interval", "repeat"):
            if getattr(self, key) is not None and not getattr(self, key):
                raise document_error(f"has '{key}: 0s': give it a duration", key)
        return self

    @model_validator(mode="after")
    def _has_no_key_without_effect(self) -> Self:
        if self.on == "event" and self.transitions != ("opened",):
            raise document_error("has 'transitions', which belongs to 'on: alarm': remove it", "transitions")
        if self.on == "event" and self.when is None:
            raise document_error("would start for every event: add 'when'", "on")
        if self.group_by and self.group_wait is None and self.overlap == "allow" and not self.notify:
            raise document_error(
                "has 'group_by' without effect: add 'group_wait', or an 'overlap' that counts per group",
                "group_by",
            )
        if self.group_wait is not None and not self.group_wait:
            raise document_error("has 'group_wait: 0s' without effect: remove it", "group_wait")
        if self.rate_limit is not None and not self.rate_limit.per:
            raise document_error("has 'rate_limit' per 0s: give it a duration", "rate_limit")
        return self
