"""Targets of messages: webhook, Slack, mail, or any other service by its apprise url.

Guarantee: the address of a target is well formed, its secrets are references, and a password is
never sent over an unencrypted connection. Channels and the steps of actions use the same models.
"""

from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from schemas.documents.strict_model import StrictModel, document_error
from schemas.values.duration import Duration
from schemas.values.http_headers import Headers
from schemas.values.mail_address import MailAddress
from schemas.values.pydantic_check import pydantic_check
from schemas.values.secret import Secret, TextOrSecret
from schemas.values.web_address import Host, Port, Url, check_url

_MAX_TIMEOUT = timedelta(seconds=60)


def _check_timeout(value: timedelta) -> timedelta:
    if not timedelta(0) < value <= _MAX_TIMEOUT:
        raise ValueError("the timeout must be longer than 0s and at most 60s")
    return value


Timeout = Annotated[Duration, AfterValidator(_check_timeout)]


class WebhookTarget(StrictModel):
    """A receiver of JSON over HTTP, signed (Standard Webhooks) if `secrets` is set."""

    url: Url = Field(
        description="Address of the receiver; a reference if the url itself is a secret.",
        examples=["https://hooks.example.com/tocsin", {"secret": "hook-url"}],
    )
    method: Literal["POST", "PUT", "PATCH"] = Field(
        "POST", description="Method of the request.", examples=["POST"]
    )
    headers: Headers = Field(
        default_factory=dict,
        description="Additional headers; a value may be a reference to a secret.",
        examples=[{"Authorization": {"secret": "hook-authorization"}, "X-Site": "plant-7"}],
    )
    secrets: Annotated[tuple[Secret, ...], Field(strict=False, max_length=5)] = Field(
        (),
        description="Standard Webhooks secrets (`whsec_...`) to sign with; give the new and the old one "
        "while you replace a secret.",
        examples=[[{"secret": "hook-secret"}], [{"secret": "hook-new"}, {"secret": "hook-old"}]],
    )
    timeout: Timeout = Field(
        timedelta(seconds=10), description="Longest time for the whole request.", examples=["10s"]
    )


class SlackTarget(StrictModel):
    """A Slack incoming webhook, or that of a compatible service."""

    url: Secret = Field(
        description="Url of the webhook. It is a secret, because it allows posting.",
        examples=[{"secret": "slack-url"}],
    )
    timeout: Timeout = Field(
        timedelta(seconds=10), description="Longest time for the whole request.", examples=["10s"]
    )


class SmtpServer(StrictModel):
    """The mail server that accepts the message."""

    host: Host = Field(description="Name or address of the server.", examples=["smtp.example.com"])
    port: Port | None = Field(
        None, description="Port (default: 587 for starttls, 465 for tls, 25 for none).", examples=[587]
    )
    security: Literal["starttls", "tls", "none"] = Field(
        "starttls",
        description="Encryption of the connection; starttls and tls are required, never optional.",
        examples=["starttls"],
    )
    username: TextOrSecret | None = Field(None, description="User name for the login.", examples=["tocsin"])
    password: Secret | None = Field(
        None, description="The password, as a reference.", examples=[{"secret": "smtp-password"}]
    )

    @model_validator(mode="after")
    def _logs_in_safely(self) -> Self:
        if (self.username is None) != (self.password is None):
            raise document_error("needs both 'username' and 'password', or none of them")
        if self.password is not None and self.security == "none":
            raise document_error(
                "has a 'password' and 'security: none': a password is not sent unencrypted, use starttls or tls",
                "password",
            )
        return self


class EmailTarget(StrictModel):
    """Recipients of mail, as text and HTML."""

    smtp: SmtpServer = Field(description="The mail server.", examples=[{"host": "smtp.example.com"}])
    from_: MailAddress = Field(
        alias="from", description="Sender of the mail.", examples=["Tocsin <tocsin@example.com>"]
    )
    to: Annotated[tuple[MailAddress, ...], Field(strict=False, min_length=1, max_length=50)] = Field(
        description="Recipients of the mail.", examples=[["ops@example.com", "Ada <ada@example.com>"]]
    )
    timeout: Timeout = Field(
        timedelta(seconds=20), description="Longest time for the whole delivery.", examples=["20s"]
    )


class AppriseTarget(StrictModel):
    """Any other service, by its apprise url (needs the extra `apprise`)."""

    url: Secret = Field(
        description="The apprise url, which holds credentials.", examples=[{"secret": "telegram-url"}]
    )
    timeout: Timeout = Field(
        timedelta(seconds=20), description="Longest time for the whole delivery.", examples=["20s"]
    )


class PagerDutyTarget(StrictModel):
    """A service of PagerDuty, by Events API v2."""

    routing_key: Secret = Field(
        description="Integration key of the service.", examples=[{"secret": "pagerduty-key"}]
    )
    url: Annotated[str, AfterValidator(pydantic_check(check_url))] = Field(
        "https://events.pagerduty.com/v2/enqueue",
        description="Address of the API; the European region has its own.",
        examples=["https://events.eu.pagerduty.com/v2/enqueue"],
    )
    timeout: Timeout = Field(
        timedelta(seconds=10), description="Longest time for the whole request.", examples=["10s"]
    )


Target = WebhookTarget | SlackTarget | EmailTarget | AppriseTarget | PagerDutyTarget
TARGET_KEYS = ("webhook", "slack", "email", "apprise", "pagerduty")
