"""The `channel` document: a named place to which rules send what they have to say.

Guarantee: exactly one target. A rule names its channels; whether a channel is enabled, and whether it also
gets the news that an alarm is over, is the channel's own affair.
"""

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from schemas.documents.targets import (
    TARGET_KEYS,
    AppriseTarget,
    EmailTarget,
    SlackTarget,
    Target,
    WebhookTarget,
)
from schemas.values.names import Name


class ChannelDocument(BaseModel):
    """Where alarms are sent."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: Name = Field(description="Unique name of the channel.", examples=["ops"])
    webhook: WebhookTarget | None = Field(
        None, description="Send JSON over HTTP.", examples=[{"url": "https://hooks.example.com/tocsin"}]
    )
    slack: SlackTarget | None = Field(
        None, description="Post to Slack.", examples=[{"url": {"env": "SLACK_URL"}}]
    )
    email: EmailTarget | None = Field(
        None,
        description="Send mail.",
        examples=[
            {"smtp": {"host": "smtp.example.com"}, "from": "tocsin@example.com", "to": ["ops@example.com"]}
        ],
    )
    apprise: AppriseTarget | None = Field(
        None, description="Send to any other service.", examples=[{"url": {"env": "TELEGRAM_URL"}}]
    )
    enabled: bool = Field(
        True, description="false keeps the channel, and nothing is sent to it.", examples=[True]
    )
    send_resolved: bool = Field(
        True, description="Whether it is also told when an alarm resolves.", examples=[True]
    )

    @model_validator(mode="after")
    def _has_one_target(self) -> Self:
        given = [key for key in TARGET_KEYS if getattr(self, key) is not None]
        if not given:
            raise PydanticCustomError("one_of", "needs one of webhook, slack, email or apprise", {})
        if len(given) > 1:
            raise PydanticCustomError(
                "one_of",
                "has both '{first}' and '{at_key}': keep one of webhook, slack, email and apprise",
                {"first": given[0], "at_key": given[1]},
            )
        return self

    @property
    def target(self) -> Target:
        return next(
            target for target in (self.webhook, self.slack, self.email, self.apprise) if target is not None
        )
