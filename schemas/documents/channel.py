"""The `channel` document: a named target of notifications.

Guarantee: exactly one target. Rules name their channels. The channel itself defines whether it is
enabled, whether it is notified when an alarm resolves, how a failed delivery is retried, and which
channel takes over.
"""

from datetime import timedelta
from typing import Annotated, Self

from pydantic import Field, model_validator

from schemas.documents.active_times import ActiveTimes
from schemas.documents.event_rule import Severity
from schemas.documents.strict_model import StrictModel, document_error
from schemas.documents.targets import (
    TARGET_KEYS,
    AppriseTarget,
    EmailTarget,
    PagerDutyTarget,
    SlackTarget,
    Target,
    WebhookTarget,
)
from schemas.values.duration import Duration
from schemas.values.names import Name
from schemas.values.priority import Priority

MAX_RETRY_INTERVAL = timedelta(minutes=5)


class ChannelRetry(StrictModel):
    """The delays between the attempts of a notification. It is tried until it is delivered, its alarms
    have resolved, or `give_up_after` has passed."""

    initial_interval: Duration = Field(
        timedelta(seconds=10), description="The delay before the second attempt.", examples=["10s"]
    )
    backoff: Annotated[float, Field(ge=1, le=10)] = Field(
        2.0, description="Factor from one delay to the next.", examples=[2]
    )
    max_interval: Duration = Field(
        MAX_RETRY_INTERVAL, description="Longest delay, at most 5m.", examples=["5m"]
    )
    jitter: Annotated[float, Field(ge=0, le=1)] = Field(
        0.5, description="Largest share of a delay that is left out.", examples=[0.5]
    )

    @model_validator(mode="after")
    def _is_within_bounds(self) -> Self:
        if not timedelta(0) < self.max_interval <= MAX_RETRY_INTERVAL:
            raise document_error(
                "has a 'max_interval' that is not within 5m: write at most 5m", "max_interval"
            )
        if not timedelta(0) < self.initial_interval <= self.max_interval:
            raise document_error(
                "has an 'initial_interval' that is 0s or longer than 'max_interval'", "initial_interval"
            )
        return self


DEFAULT_CHANNEL_RETRY = ChannelRetry.model_validate({})


class ChannelDocument(StrictModel):
    """A target of notifications about alarms."""

    name: Name = Field(description="Unique name of the channel.", examples=["ops"])
    webhook: WebhookTarget | None = Field(
        None, description="Send JSON over HTTP.", examples=[{"url": "https://hooks.example.com/tocsin"}]
    )
    slack: SlackTarget | None = Field(
        None, description="Post to Slack.", examples=[{"url": {"secret": "slack-url"}}]
    )
    email: EmailTarget | None = Field(
        None,
        description="Send mail.",
        examples=[
            {"smtp": {"host": "smtp.example.com"}, "from": "tocsin@example.com", "to": ["ops@example.com"]}
        ],
    )
    apprise: AppriseTarget | None = Field(
        None, description="Send to any other service.", examples=[{"url": {"secret": "telegram-url"}}]
    )
    pagerduty: PagerDutyTarget | None = Field(
        None,
        description="Open, acknowledge and resolve incidents of PagerDuty.",
        examples=[{"routing_key": {"secret": "pagerduty-key"}}],
    )
    enabled: bool = Field(
        True, description="false keeps the channel, but nothing is sent to it.", examples=[True]
    )
    send_resolved: bool = Field(
        True, description="Whether the channel is also notified when an alarm resolves.", examples=[True]
    )

    active_in: ActiveTimes | None = Field(
        None,
        description="Times in which the channel is notified. Outside of them notifications wait, and what is still "
        "open is sent when these times begin.",
        examples=[{"only_in": ["business-days"], "hours": ["08:00-20:00"], "tz": "Europe/London"}],
    )
    urgent: Severity | None = Field(
        None,
        description="Alarms of this severity and above are notified outside of `active_in` as well.",
        examples=["critical"],
    )
    acknowledge_link: bool = Field(
        False,
        description="Whether messages about one alarm have a link that acknowledges it without a login, for a week. "
        "It needs TOCSIN_CONSOLE_URL.",
        examples=[True],
    )

    priority: Priority = Field(
        "normal",
        description="Which notifications a worker sends first when more are due than it can send: `high` before "
        "`normal` before `low`.",
        examples=["high"],
    )
    tz: str = Field(
        "UTC",
        description="IANA timezone of the times in messages.",
        examples=["Europe/Amsterdam", "America/New_York"],
    )
    retry: ChannelRetry = Field(
        DEFAULT_CHANNEL_RETRY,
        description="Delays between the attempts of a notification that fails.",
        examples=[{"initial_interval": "10s"}],
    )
    give_up_after: Duration = Field(
        timedelta(hours=24),
        description="Time of failing after which a notification is given up (event `notification-failed`).",
        examples=["24h"],
    )
    fallback: Name | None = Field(
        None,
        description="Channel that is notified while this one fails: at once if the failure is permanent, "
        "otherwise after `fallback_after`.",
        examples=["on-call"],
    )
    fallback_after: Duration | None = Field(
        None, description="Time of failing before the fallback is notified; default 5m.", examples=["5m"]
    )

    @model_validator(mode="after")
    def _has_no_key_without_effect(self) -> Self:
        if self.fallback_after is not None and self.fallback is None:
            raise document_error("has 'fallback_after' without 'fallback'", "fallback_after")
        if self.urgent is not None and self.active_in is None:
            raise document_error("has 'urgent' without 'active_in'", "urgent")
        if self.fallback == self.name:
            raise document_error("is its own fallback: name another channel", "fallback")
        if self.acknowledge_link and self.pagerduty is not None:
            raise document_error(
                "has 'acknowledge_link', and PagerDuty acknowledges by itself: remove it", "acknowledge_link"
            )
        if not self.give_up_after:
            raise document_error("has 'give_up_after: 0s': give it a duration", "give_up_after")
        return self

    @model_validator(mode="after")
    def _has_one_target(self) -> Self:
        present = [key for key in TARGET_KEYS if getattr(self, key) is not None]
        if not present:
            raise document_error("needs one of webhook, slack, email, apprise or pagerduty")
        if len(present) > 1:
            raise document_error(
                f"has both '{present[0]}' and '{present[1]}': keep one of webhook, slack, email, apprise and pagerduty",
                present[1],
            )
        return self

    @property
    def target(self) -> Target:
        return next(
            target
            for target in (self.webhook, self.slack, self.email, self.apprise, self.pagerduty)
            if target is not None
        )
