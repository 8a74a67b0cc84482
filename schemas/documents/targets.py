"""Where a message goes: webhook, Slack, mail, or any other service by its apprise url.

Guarantee: a target that exists can be tried: its address is well formed, what is secret in it is a
reference, and a password is never sent over a connection that is not encrypted. Channels and the steps of
actions use the same models.
"""

from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from schemas.values.duration import Duration
from schemas.values.http_headers import Headers
from schemas.values.mail_address import MailAddress
from schemas.values.secret import Secret, TextOrSecret
from schemas.values.web_address import Host, Port, Url

_LONGEST_TIMEOUT = timedelta(seconds=60)


def _timeout(value: timedelta) -> timedelta:
    if not timedelta(0) < value <= _LONGEST_TIMEOUT:
        raise ValueError("the timeout must be longer than 0s and at most 60s")
    return value


Timeout = Annotated[Duration, AfterValidator(_timeout)]


class WebhookTarget(BaseModel):
    """Receives JSON over HTTP, signed as Standard Webhooks if there is a secret to sign with."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    url: Url = Field(
        description="Where to send it; a reference if the url itself is a secret.",
        examples=["https://hooks.example.com/tocsin", {"env": "HOOK_URL"}],
    )
    method: Literal["POST", "PUT", "PATCH"] = Field(
        "POST", description="Method of the request.", examples=["POST"]
    )
    headers: Headers = Field(
        default_factory=dict,
        description="Additional headers; a value may be a reference to a secret.",
        examples=[{"Authorization": {"env": "HOOK_AUTHORIZATION"}, "X-Site": "plant-7"}],
    )
    secrets: Annotated[tuple[Secret, ...], Field(strict=False, max_length=5)] = Field(
        (),
        description="Standard Webhooks secrets (`whsec_...`) to sign with; several while one is replaced.",
        examples=[[{"env": "HOOK_SECRET"}], [{"file": "/run/secrets/hook-new"}, {"env": "HOOK_OLD"}]],
    )
    timeout: Timeout = Field(
        timedelta(seconds=10), description="Longest time for the whole request.", examples=["10s"]
    )


class SlackTarget(BaseModel):
    """An incoming webhook of Slack, or of a service that speaks the same."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    url: Secret = Field(
        description="The webhook's url, which is a secret: whoever has it can post.",
        examples=[{"env": "SLACK_URL"}],
    )
    timeout: Timeout = Field(
        timedelta(seconds=10), description="Longest time for the whole request.", examples=["10s"]
    )


class SmtpServer(BaseModel):
    """The mail server that takes the message."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    host: Host = Field(description="Name or address of the server.", examples=["smtp.example.com"])
    port: Port | None = Field(
        None, description="Port (default: 587 for starttls, 465 for tls, 25 for none).", examples=[587]
    )
    security: Literal["starttls", "tls", "none"] = Field(
        "starttls",
        description="How the connection is encrypted; starttls and tls are required, never merely tried.",
        examples=["starttls"],
    )
    username: TextOrSecret | None = Field(None, description="Who logs in.", examples=["tocsin"])
    password: Secret | None = Field(
        None, description="The password, as a reference.", examples=[{"env": "SMTP_PASSWORD"}]
    )

    @model_validator(mode="after")
    def _logs_in_safely(self) -> Self:
        if (self.username is None) != (self.password is None):
            raise PydanticCustomError("one_of", "needs both 'username' and 'password', or none of them", {})
        if self.password is not None and self.security == "none":
            raise PydanticCustomError(
                "one_of",
                "has a '{at_key}' and 'security: none': a password is not sent unencrypted, use starttls or tls",
                {"at_key": "password"},
            )
        return self


class EmailTarget(BaseModel):
    """Receives mail, as text and HTML."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    smtp: SmtpServer = Field(description="The mail server.", examples=[{"host": "smtp.example.com"}])
    from_: MailAddress = Field(
        alias="from", description="Whom the mail comes from.", examples=["Tocsin <tocsin@example.com>"]
    )
    to: Annotated[tuple[MailAddress, ...], Field(strict=False, min_length=1, max_length=50)] = Field(
        description="Who receives it.", examples=[["ops@example.com", "Ada <ada@example.com>"]]
    )
    timeout: Timeout = Field(
        timedelta(seconds=20), description="Longest time for the whole delivery.", examples=["20s"]
    )


class AppriseTarget(BaseModel):
    """Any other service, by its apprise url (needs the extra `tocsin[apprise]`)."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    url: Secret = Field(
        description="The apprise url, which holds credentials.", examples=[{"env": "TELEGRAM_URL"}]
    )
    timeout: Timeout = Field(
        timedelta(seconds=20), description="Longest time for the whole delivery.", examples=["20s"]
    )


Target = WebhookTarget | SlackTarget | EmailTarget | AppriseTarget
TARGET_KEYS = ("webhook", "slack", "email", "apprise")
