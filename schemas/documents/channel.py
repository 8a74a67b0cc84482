"""The `channel` document: a named target of notifications.

Guarantee: exactly one target. Rules name their channels. The channel itself defines whether it is
enabled and whether it is notified when an alarm resolves.
"""

from typing import Self

from pydantic import Field, model_validator

from schemas.documents.strict_model import StrictModel, document_error
from schemas.documents.targets import (
    TARGET_KEYS,
    AppriseTarget,
    EmailTarget,
    SlackTarget,
    Target,
    WebhookTarget,
)
from schemas.values.names import Name


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
    enabled: bool = Field(
        True, description="false keeps the channel, but nothing is sent to it.", examples=[True]
    )
    send_resolved: bool = Field(
        True, description="Whether the channel is also notified when an alarm resolves.", examples=[True]
    )

    tz: str = Field(
        "UTC",
        description="IANA timezone of the times in messages.",
        examples=["Europe/Amsterdam", "America/New_York"],
    )

    @model_validator(mode="after")
    def _has_one_target(self) -> Self:
        present = [key for key in TARGET_KEYS if getattr(self, key) is not None]
        if not present:
            raise document_error("needs one of webhook, slack, email or apprise")
        if len(present) > 1:
            raise document_error(
                f"has both '{present[0]}' and '{present[1]}': keep one of webhook, slack, email and apprise",
                present[1],
            )
        return self

    @property
    def target(self) -> Target:
        return next(
            target for target in (self.webhook, self.slack, self.email, self.apprise) if target is not None
        )
